'use strict'

// What memory outside the heap does over a window of time: a look says how it lies, not how it
// comes and goes.

const { median } = require('../statistics/quantile')
const { bufferChurnBytes } = require('./buffers')
const { residentNow } = require('../memory/anatomy')
const { NATIVE_BASE_BYTES } = require('../memory/parts')
const { canTellRetained, retainedOf } = require('../memory/retained')

/** @typedef {import('../history/window').Window} Window */

/** Long enough for a load to come and go. */
const NATIVE_SECONDS = 600
/**
 * Buffers that come and go fill and leave the same memory: what is typical shows in the median,
 * over more than one round.
 */
const TYPICAL_SECONDS = 60

/**
 * @param {Window} window
 * @returns {number | null} anonymous resident memory outside the V8 heap and Buffers
 */
const typicalNativeBytes = window => {
  const { values } = window.points('nativeBytes', TYPICAL_SECONDS)
  return values.length > 0 ? median(values) : null
}

/**
 * Memory outside the heap at each moment, in all and without Buffers.
 * @param {Window} window
 * @param {number} seconds
 * @returns {{ native: number, outside: number }[]} bytes, oldest first
 */
function readingsOutside (window, seconds) {
  const outside = window.points('outsideHeapBytes', seconds)
  const native = window.points('nativeBytes', seconds)
  const readings = []
  let at = 0
  for (let i = 0; i < native.times.length; i++) {
    while (outside.times[at] < native.times[i]) at++
    if (outside.times[at] !== native.times[i]) continue
    readings.push({ native: native.values[i], outside: outside.values[at] })
  }
  return readings
}

/**
 * Memory that was free, as Buffers took it: native memory fell while all that lies outside the heap
 * did not. What the kernel got back does not count: malloc holds it no more.
 * @param {Window} window
 * @returns {number} the largest such fall in the last ten minutes, without the start
 */
const nativeReusedBytes = window => window.once('native reused', () => {
  let highest = { native: 0, outside: 0 }
  let reused = 0
  for (const reading of readingsOutside(window, window.settledSeconds(NATIVE_SECONDS))) {
    if (reading.native > highest.native) highest = reading
    const returned = Math.max(0, highest.outside - reading.outside)
    reused = Math.max(reused, highest.native - reading.native - returned)
  }
  return reused
})

/**
 * What the kernel got back lately: the typical reading still holds it.
 * @param {Window} window
 * @returns {number} fall of the native memory, of that what RSS fell with it
 */
const lastReturnedBytes = window => window.once('last returned', () => {
  const readings = readingsOutside(window, TYPICAL_SECONDS)
  const now = readings.at(-1)
  if (!now) return 0
  const falls = readings.map(({ native, outside }) =>
    Math.min(native - now.native, outside - now.outside))
  return Math.max(...falls)
})

/** An answer of malloc is out of date when it took more of its memory since. */
const STALE_SHARE = 0.1

/**
 * What malloc took since it was asked, and whether its answer still tells how its memory lies.
 * @param {Window} window
 * @returns {{ asked: boolean, sinceBytes: number }} asked: false where it was never asked, too
 */
const answer = window => window.once('answer of malloc', () => {
  const resident = window.scan?.asked ? residentNow(window) : null
  if (!resident) return { asked: false, sinceBytes: 0 }
  const { native, external, slack, since } = resident
  const isStale = since > STALE_SHARE * (native + external + slack + since)
  return { asked: !isStale, sinceBytes: isStale ? since : 0 }
})

/**
 * @param {Window} window
 * @returns {number | null} typically: what malloc holds beside Buffers and what Node itself needs
 */
const slackBytes = window => {
  const { values } = window.points('allocatorSlackBytes', TYPICAL_SECONDS)
  if (values.length > 0) {
    return Math.max(0, median(values) + answer(window).sinceBytes - lastReturnedBytes(window))
  }
  // Where no look can be had, malloc's extent is a bound.
  const native = typicalNativeBytes(window)
  const span = window.last('mallocSpanBytes')
  if (native === null || span === undefined) return null
  return Math.max(0, Math.min(native - lastReturnedBytes(window), span) - NATIVE_BASE_BYTES)
}

/**
 * @param {Window} window
 * @returns {number} how far memory outside the heap was seen to come and go
 */
const movedBytes = window => window.once('moved', () =>
  Math.max(bufferChurnBytes.compute(window) ?? 0, nativeReusedBytes(window)))

/**
 * What malloc retains, typically, and its bounds; null where the allocator cannot be told.
 * @param {Window} window
 */
const retained = window => window.once('retained', () => {
  const slack = canTellRetained(window.hello.allocator) ? slackBytes(window) : null
  if (slack === null) return null
  const { asked } = answer(window)
  return retainedOf({ slackBytes: slack, movedBytes: movedBytes(window), asked })
})

module.exports = {
  answer,
  NATIVE_SECONDS,
  TYPICAL_SECONDS,
  typicalNativeBytes,
  nativeReusedBytes,
  slackBytes,
  retained
}

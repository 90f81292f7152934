'use strict'

const { mean, median } = require('simple-statistics')
const { bufferChurnBytes } = require('../signals/buffers')
const { anatomyOf } = require('./anatomy')
const { retainedOf } = require('./retained')
const { jemallocOverhead } = require('./scan')

/** @typedef {import('../series/window').Window} Window */

/** Long enough for a load to come and go. */
const NATIVE_SECONDS = 600
/** Buffers that come and go fill and leave the same memory: what is typical shows in the median, over more than one round. */
const TYPICAL_SECONDS = 60
/** What Node's own mallocs, stacks and the like hold in a small app. Measured 6–15 MiB on Node 18–26. */
const NATIVE_BASE_BYTES = 16 * 2 ** 20

/** @param {Window} window @returns {number | null} anonymous resident memory outside the V8 heap and Buffers */
const typicalNativeBytes = window => {
  const { values } = window.points('nativeBytes', TYPICAL_SECONDS)
  return values.length > 0 ? median(values) : null
}

/** @param {Window} window @returns {number} the largest fall of that memory */
const nativeReturnedBytes = window => {
  let highest = 0
  let fall = 0
  for (const value of window.points('nativeBytes', window.settledSeconds(NATIVE_SECONDS)).values) {
    highest = Math.max(highest, value)
    fall = Math.max(fall, highest - value)
  }
  return fall
}

/** @param {Window} window @returns {number | null} typically: what malloc holds beside Buffers and what Node itself needs */
const slackBytes = window => {
  const { values } = window.points('allocatorSlackBytes', TYPICAL_SECONDS)
  if (values.length > 0) return median(values)
  // Where no look can be had, malloc's extent is a bound.
  const native = typicalNativeBytes(window)
  const span = window.last('mallocSpanBytes')
  return native === null || span === undefined ? null : Math.max(0, Math.min(native, span) - NATIVE_BASE_BYTES)
}

/** @param {Window} window @returns {number} how far memory outside the heap was seen to come and go */
const movedBytes = window => window.once('moved', () => Math.max(bufferChurnBytes.compute(window) ?? 0, nativeReturnedBytes(window)))

/** What malloc retains, typically, and its bounds. @param {Window} window */
const retained = window => window.once('retained', () => {
  const slack = slackBytes(window)
  return slack === null ? null : retainedOf({ slackBytes: slack, movedBytes: movedBytes(window), asked: window.scan?.asked === true })
})

/** What is freed stays with jemalloc so long: dirty_decay_ms of the setting that is recommended. */
const JEMALLOC_DECAY_SECONDS = 1

/**
 * What RSS would be less under jemalloc, on average: the slack, less what jemalloc keeps – its own overhead, and what was freed
 * within its decay time. Null where no look can be had.
 * @param {Window} window
 */
const jemallocSavingBytes = window => {
  const seconds = window.settledSeconds(NATIVE_SECONDS)
  const slack = window.points('allocatorSlackBytes', seconds).values
  const { times, values } = window.points('externalBytes', seconds)
  if (slack.length === 0 || values.length < 2) return null
  const peaks = window.points('externalPeakBytes', seconds).values
  let freed = 0
  for (let i = 1; i < values.length; i++) freed += Math.max(0, Math.max(peaks[i] ?? 0, values[i - 1]) - values[i])
  const freedPerSecond = freed / (times[times.length - 1] - times[0])
  return Math.max(0, mean(slack) - jemallocOverhead(mean(values)) - freedPerSecond * JEMALLOC_DECAY_SECONDS)
}

/**
 * Where the memory of a target's process is; of a worker nothing but its heap is known.
 * @param {import('../series/target').Target} target
 * @returns {import('./anatomy').Anatomy | null} null before the first frame, and of a worker
 */
function anatomyOfTarget (target) {
  const window = target.window()
  if (!window) return null
  return anatomyOf({ values: target.values, workers: target.workers, scan: target.scan, movedBytes: movedBytes(window) })
}

module.exports = { NATIVE_SECONDS, TYPICAL_SECONDS, typicalNativeBytes, nativeReturnedBytes, slackBytes, retained, jemallocSavingBytes, anatomyOfTarget }

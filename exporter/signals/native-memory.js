'use strict'

// What memory outside the heap does over a window of time: a look says how it lies, not how it comes and goes.

const { median } = require('../statistics/quantile')
const { bufferChurnBytes } = require('./buffers')
const { retainedOf } = require('../anatomy/retained')

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

module.exports = { NATIVE_SECONDS, TYPICAL_SECONDS, typicalNativeBytes, nativeReturnedBytes, slackBytes, movedBytes, retained }

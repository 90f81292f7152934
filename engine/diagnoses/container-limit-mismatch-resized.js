'use strict'

const { evidence, prediction } = require('./evidence')
const { formatBytes } = require('../text/format')
const { flagsInForce } = require('../v8/flags')
const { oldGenerationLimit } = require('../v8/heap-sizing')
const { planCase } = require('../v8/plan-case')
const { runningProcess } = require('../v8/running-process')

/** @typedef {import('./container-limit-mismatch').Limits} Limits */
/** @typedef {import('./container-limit-mismatch').Signals} Signals */
/** @typedef {import('./container-limit-mismatch').Finding} Finding */
/** @typedef {import('./container-limit-mismatch').Judgement} Judgement */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/** Flags that set the old generation independently of the container's limit. */
const FIXED = ['--max-old-space-size', '--max-heap-size']

/**
 * True if a flag sets the heap's size, independently of the container's limit.
 * @param {Hello} target
 */
function isSizedByFlag (target) {
  const flags = flagsInForce(target)
  return FIXED.some(flag => flags.has(flag))
}

/**
 * Finds a container limit that was changed while the process ran. V8 derives its heap size limit
 * from the container's limit once, at its start.
 * @param {Signals} signals
 * @param {Hello} target
 * @returns {{ beforeBytes: number, restartedBytes: number } | null} restartedBytes: heap size limit
 *   that V8 would choose after a restart; null if the container's limit has not changed since the
 *   start, or a flag sizes the heap
 */
function findResize (signals, target) {
  const { containerLimitBytes, containerLimitBeforeBytes, heapSizeLimitBytes } = signals
  if (containerLimitBeforeBytes === null || containerLimitBytes === null) return null
  if (isSizedByFlag(target) || target.pointerCompression) return null
  const process = runningProcess(target, containerLimitBytes, { bytes: Infinity, given: false })
  if (!process) return null
  const [before, restarted] = [containerLimitBeforeBytes, containerLimitBytes]
    .map(bytes => planCase(process.version, bytes, process).sizes.heapSizeLimitBytes)
  return heapSizeLimitBytes === before && restarted !== before
    ? { beforeBytes: containerLimitBeforeBytes, restartedBytes: restarted }
    : null
}

/**
 * Judges a raised limit: the additional memory stays unused, because V8 keeps its heap size limit.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Finding} finding
 * @returns {Judgement | null} null if the limit was not raised
 */
function judgeRaised (signals, limits, finding) {
  const { limitBytes, liveBytes, resize, semiSpaceBytes, heapLimitBytes } = finding
  if (!resize || resize.beforeBytes >= limitBytes) return null
  const semi = semiSpaceBytes === null
    ? null
    : /** @type {const} */ ({ bytes: semiSpaceBytes, origin: 'derived', because: '' })
  const isTight = liveBytes > limits.liveShareRatio * oldGenerationLimit(heapLimitBytes, semi)
  return {
    state: 'confirmed',
    severity: isTight ? 'warning' : 'info',
    summary: `The container's limit was raised from ${formatBytes(resize.beforeBytes)} to ` +
      `${formatBytes(limitBytes)} while the process ran: V8 keeps the heap limit of ` +
      `${formatBytes(heapLimitBytes)} that it chose at the start.`,
    finding,
    evidence: [
      evidence('heapSizeLimitBytes', heapLimitBytes, resize.restartedBytes, (value, chosen) =>
        `The heap may grow to ${value}; after a restart V8 would choose ${chosen}.`),
      evidence('containerLimitBytes', limitBytes, resize.beforeBytes, (value, before) =>
        `The container may hold ${value}; V8 sized the heap for ${before}.`)
    ],
    impact: 'The added memory is reserved, and the heap cannot use it: ' +
      (isTight
        ? `the live heap of ${formatBytes(liveBytes)} nearly fills the old generation, so V8 ` +
          'runs GCs all the time, or the process ends with heap out of memory (exit 134).'
        : 'a growing heap still reaches the old limit.')
  }
}

/**
 * The fix: after a restart V8 uses the new limit.
 * @param {Finding} finding
 * @returns {import('./define-diagnosis').Fix[]} none if the limit has not changed since the start
 */
function restart ({ resize, heapLimitBytes, limitBytes }) {
  if (!resize) return []
  return [{
    title: 'Restart the process, so that V8 chooses its heap size for the new limit',
    change: { code: 'Restart the process, for example with kubectl rollout restart.' },
    predicted: [prediction('heapSizeLimitBytes', heapLimitBytes, resize.restartedBytes)],
    risk: `The limit changed from ${formatBytes(resize.beforeBytes)} to ` +
      `${formatBytes(limitBytes)} in place. A running V8 does not follow such a change.`
  }]
}

module.exports = { findResize, isSizedByFlag, judgeRaised, restart }

'use strict'

const { cpuTimeEvidence, evidence, listEvidence } = require('./evidence')
const { throttledText } = require('./event-loop-blocked-delays')
const { formatMilliseconds: ms, formatRatio } = require('../text/format')
const { FELT_SECONDS } = require('../signals/felt-delay')

/** @typedef {import('./event-loop-blocked').Limits} Limits */
/** @typedef {import('./event-loop-blocked').Signals} Signals */
/** @typedef {import('./event-loop-blocked').Waiters} Waiters */

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ waiters: Waiters, waits: boolean }} found
 */
function showEvidence (signals, limits, { waiters, waits }) {
  const { blockedFramesRatio: blocked, eventLoopUtilizationRatio: busy } = signals
  const { longestDelaySeconds: longest, expectedWaitSeconds: mean } = signals
  const { cpuThrottledRatio: throttled, threadCpuRatio } = signals
  const gc = signals.gcPauseRatio ?? 0
  return listEvidence(
    evidence('blockedFramesRatio', blocked, limits.blockedFramesRatio, (value, limit) =>
      `In ${value} of the seconds the event loop was late by more than ${ms(FELT_SECONDS)} ` +
      `(threshold ${limit}).`),
    evidence('expectedWaitSeconds', mean, limits.expectedWaitSeconds, () =>
      `Timers and requests wait ${ms(mean)} on average (threshold ` +
      `${ms(limits.expectedWaitSeconds)}); ` +
      `the longest wait was ${ms(longest)}.`),
    evidence('gcPauseRatio', gc, limits.gcShareRatio * busy, (value, limit) =>
      `GC pauses take ${value} of the time, less than ${limit}, while the loop is busy ` +
      `${formatRatio(busy)} of the time: GC is not the main cause.`),
    evidence('cpuThrottledRatio', throttled ?? 0, limits.throttledRatio, () =>
      throttled === null
        ? 'No CPU limit is known that could throttle it.'
        : `${capital(throttledText(signals))}${throttled ? '; the waits without it count' : ''}.`),
    waitersEvidence(waiters, signals),
    cpuTimeEvidence(
      signals,
      `blocks of up to ${ms(signals.longestDelayCpuSeconds)}, and a wait of ` +
        `${ms(signals.expectedWaitCpuSeconds)} on average`
    ),
    threadCpuRatio !== null &&
      evidence('threadCpuRatio', threadCpuRatio, limits.waitingCpuShareRatio * busy, value =>
        waits
          ? `Only ${value} of a core is in use: the code waits inside a synchronous call.`
          : `${value} of a core is in use: the code computes.`)
  )
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ waiters: Waiters, isHang: boolean }} found
 */
function showRare (signals, limits, { waiters, isHang }) {
  const { longBlocksSeen: count, longBlocksWaitSeconds: mean } = signals
  const { longBlocksSpanSeconds: seconds, longestBlockSeconds: longest } = signals
  const { longBlocksSpanSeconds: leastSpan } = limits
  return listEvidence(
    isHang
      ? evidence('longestBlockSeconds', longest ?? 0, limits.hangSeconds, (value, limit) =>
        `In the last minutes it computed for ${value} in one piece (threshold ${limit}), not ` +
        'counting GC or waits for a CPU.')
      : evidence('longBlocksSeen', count ?? 0, limits.longBlocks, (value, limit) =>
        `In the last minutes it computed ${value} times for 0.2 s or longer in one piece ` +
        `(threshold ${limit}), not counting GC or waits for a CPU.`),
    !isHang &&
      evidence('longBlocksSpanSeconds', seconds ?? 0, leastSpan, (value, limit) =>
        `These blocks are spread over ${value} (threshold ${limit}).`),
    evidence('longBlocksWaitSeconds', mean ?? 0, limits.expectedWaitSeconds, () =>
      `Because of ${count === 1 ? 'this block' : 'such blocks'} timers and requests wait ` +
      `${ms(mean ?? 0)} on average (threshold ` +
      `${ms(limits.expectedWaitSeconds)}); the longest took ${ms(longest ?? 0)}.`),
    waitersEvidence(waiters, signals)
  )
}

/** @param {string} sentence */
const capital = sentence => sentence.charAt(0).toUpperCase() + sentence.slice(1)

/**
 * @param {Waiters} waiters
 * @param {Signals} signals
 */
function waitersEvidence (waiters, { serversListening, fewestTimers, fewestConnections }) {
  if (waiters === 'clients') return []
  const pending = fewestTimers
    ? evidence('fewestTimers', fewestTimers, 0, value =>
      fewestTimers === 1 ? 'One timer is always pending' : `${value} timers are always pending`)
    : evidence('fewestConnections', fewestConnections ?? 0, 0, value =>
      `${value} connections are always open`)
  const conclusion = waiters === 'timers'
    ? 'they fire late'
    : 'it is unknown whether a client waits'
  return [
    evidence('serversListening', serversListening ?? 0, 0, () => 'No server listens.'),
    { ...pending, text: `${pending.text}: ${conclusion}.` }
  ]
}

module.exports = { capital, showEvidence, showRare }

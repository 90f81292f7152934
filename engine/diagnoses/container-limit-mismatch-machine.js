'use strict'

const { ok } = require('./define-diagnosis')
const { evidence } = require('./evidence')
const { formatBytes } = require('../text/format')

/** @typedef {import('./container-limit-mismatch').Judgement} Judgement */

/**
 * Judges a process without a memory limit: the machine's memory is the limit.
 * @param {import('./container-limit-mismatch').Signals} signals
 * @param {import('./container-limit-mismatch').Limits} limits
 * @param {(limitBytes: number) => import('./container-limit-mismatch').Finding} describe
 * @param {number} [machineBytes]
 * @returns {Judgement}
 */
function judgeMachine (signals, limits, describe, machineBytes) {
  const { heapSizeLimitBytes: heapLimit } = signals
  if (machineBytes === undefined) return ok('the container has no visible memory limit')
  const machine = formatBytes(machineBytes)
  if (heapLimit <= limits.blindRatio * machineBytes) {
    return ok('the container has no visible memory limit, and a full heap ' +
      `(${formatBytes(heapLimit)}) fits the machine's ${machine}`)
  }
  const isNear = (signals.rssShareRatio ?? 0) >= limits.suspectedRssShareRatio
  return {
    state: 'confirmed',
    severity: isNear ? 'warning' : 'info',
    summary: `V8 may use ${formatBytes(heapLimit)} of heap: more than the machine's ${machine}.`,
    finding: describe(machineBytes),
    evidence: [
      evidence('heapSizeLimitBytes', heapLimit, limits.blindRatio * machineBytes, (value, limit) =>
        `The heap may grow to ${value}; the machine has ${limit}.`)
    ],
    impact: 'V8 does not run more GCs when the machine is nearly out of memory. If the heap then ' +
      'grows, the kernel kills this process or another one, and the log has no message about a heap.'
  }
}

module.exports = { judgeMachine }

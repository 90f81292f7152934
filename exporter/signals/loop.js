'use strict'

const { RATE_SECONDS } = require('../series/window')

/**
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../series/window').Window} Window
 */

/** @param {Window} window @param {number} seconds */
function utilization (window, seconds) {
  const active = window.increase('eventLoopActiveSeconds', seconds)
  const idle = window.increase('eventLoopIdleSeconds', seconds)
  const total = (active?.increase ?? 0) + (idle?.increase ?? 0)
  return active && total > 0 ? active.increase / total : null
}

/** A delay that a person at the other end begins to feel. */
const FELT_SECONDS = 0.1

module.exports = {
  eventLoopUtilizationRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of wall time in which the event loop was not waiting, over the last ${RATE_SECONDS} s.`,
    compute: window => utilization(window, RATE_SECONDS)
  }),
  lastMinuteUtilizationRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of wall time in which the event loop was not waiting, over the last minute.',
    compute: window => window.nowSeconds < 60 ? null : utilization(window, 60)
  }),
  loadGrowthRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Event loop activity of the last third of the last two minutes (less at the start of a life) over that of the third before: 1 is a steady load.',
    compute: window => {
      const third = Math.min(40, window.nowSeconds / 4)
      const ends = (/** @type {number} */ seconds) => window.increase('eventLoopActiveSeconds', seconds)
      const late = ends(third)
      const both = ends(2 * third)
      if (!late || !both || both.overSeconds <= late.overSeconds) return null
      const before = (both.increase - late.increase) / (both.overSeconds - late.overSeconds)
      return before > 0 ? late.increase / late.overSeconds / before : null
    }
  }),
  meanDelaySeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `How late a timer fires that is due at a random moment, mean of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const count = window.increase('delayCount')
      const sum = window.increase('delaySeconds')
      return count && sum && count.increase > 0 ? sum.increase / count.increase : null
    }
  }),
  blockedFramesRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of the seconds of the last ${RATE_SECONDS} s in which something was delayed by more than ${FELT_SECONDS * 1000} ms.`,
    compute: window => {
      const { values } = window.points('longestDelaySeconds', RATE_SECONDS)
      return values.length > 0 ? values.filter(value => value > FELT_SECONDS).length / values.length : null
    }
  }),
  longestDelaySeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `The longest delay of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('longestDelaySeconds', RATE_SECONDS)
      return values.length > 0 ? Math.max(...values) : null
    }
  }),
  loopWindowSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'The time that these were seen over: less than the window at the start of a life.',
    compute: window => window.increase('delaySeconds')?.overSeconds ?? null
  }),
  threadCpuRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `CPU time of the thread (of the process where Node does not tell) over wall time, last ${RATE_SECONDS} s.`,
    compute: window => window.rate('threadCpuSeconds') ?? window.rate('processCpuSeconds')
  }),
  cpuThrottledRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Time the cgroup held the process back for its CPU quota, over wall time, last ${RATE_SECONDS} s.`,
    compute: window => window.rate('cpuThrottledSeconds')
  })
}

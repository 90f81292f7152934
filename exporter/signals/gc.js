'use strict'

const { RATE_SECONDS } = require('../series/window')
const { semiSpaceMax } = require('../v8/heap-sizing')

/** @typedef {import('./index').Signal} Signal */

/**
 * Share of wall time spent in pauses that `track` counts.
 * @param {import('../series/tracks').TrackName} track @param {string} help @returns {Signal}
 */
const pauseRatio = (track, help) => ({ unit: 'ratio', help, compute: window => window.rate(track) })

module.exports = {
  scavengesPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: `Scavenges a second over the last ${RATE_SECONDS} s.`,
    compute: window => window.rate('scavenges')
  }),
  ordinaryMajorsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: `Major GCs a second that V8 ran for its own spaces, not for Buffers and not on request, over the last ${RATE_SECONDS} s.`,
    compute: window => window.rate('ordinaryMajors')
  }),
  gcWindowSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'The time that these rates were seen over: less than the window at the start of a life.',
    compute: window => window.increase('scavenges')?.overSeconds ?? null
  }),
  recentGcs: /** @type {Signal} */ ({
    unit: 'count',
    help: `Scavenges and ordinary majors in the last ${RATE_SECONDS} s: the evidence that rates rest on.`,
    compute: window => {
      const scavenges = window.increase('scavenges')
      return scavenges && scavenges.increase + (window.increase('ordinaryMajors')?.increase ?? 0)
    }
  }),
  scavengePauseRatio: pauseRatio('scavengePauseSeconds', 'Share of wall time paused in scavenges.'),
  ordinaryMajorPauseRatio: pauseRatio('ordinaryMajorPauseSeconds', 'Share of wall time paused in ordinary majors and their marking steps.'),
  gcPauseRatio: pauseRatio('gcPauseSeconds', 'Share of wall time paused in GCs of all kinds.'),
  eventLoopUtilizationRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of wall time in which the event loop was not waiting.',
    compute: window => {
      const active = window.increase('eventLoopActiveSeconds')
      const idle = window.increase('eventLoopIdleSeconds')
      const total = (active?.increase ?? 0) + (idle?.increase ?? 0)
      return active && total > 0 ? active.increase / total : null
    }
  }),
  semiSpaceCapacityBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What one semi-space has grown to.',
    compute: window => window.last('semiSpaceCapacityBytes') ?? null
  }),
  semiSpaceMaxBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What one semi-space may grow to: from the flags, else as V8 derives it from the memory it was told of.',
    compute: window => {
      const { heapSizeLimitBytes } = window.values
      return heapSizeLimitBytes === undefined ? null : semiSpaceMax(window.hello, heapSizeLimitBytes)?.bytes ?? null
    }
  })
}

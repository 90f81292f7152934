'use strict'

const { RATE_SECONDS } = require('../history/window')
const { readSemiSpaceMax } = require('./heap-sizes')
const { NOW_SECONDS, cpuTimeSignals, knownSeconds } = require('./cpu-time')

/**
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 */

/**
 * Share of wall time. Node.js reports a pause in the next turn of its loop, which may be a frame
 * later than the pause.
 * @param {Window} window
 * @param {TrackName} track counter of pauses
 * @param {number} [seconds]
 */
function shareOfWallTime (window, track, seconds) {
  const rate = window.rate(track, seconds)
  return rate && Math.min(1, rate)
}

/**
 * Signal for the share of wall time spent in the pauses that `track` counts.
 * @param {TrackName} track
 * @param {string} help
 * @returns {Signal}
 */
const pauseRatio = (track, help) => ({
  unit: 'ratio',
  help,
  compute: window => shareOfWallTime(window, track)
})

module.exports = {
  ...cpuTimeSignals,
  scavengesPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: `Scavenges a second over the last ${RATE_SECONDS} s.`,
    compute: window => window.rate('scavenges')
  }),
  ordinaryMajorsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: `Major GCs a second for V8's own spaces over the last ${RATE_SECONDS} s, without those ` +
      'for Buffers and those on request.',
    compute: window => window.rate('ordinaryMajors')
  }),
  promotedPerMajorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Upper bound of the bytes promoted between two ordinary major GCs: the largest ' +
      `semi-space of the last ${RATE_SECONDS} s, full at each scavenge.`,
    compute: window => {
      const most = readSemiSpaceMax(window)
      const { values } = window.points('semiSpaceCapacityBytes', RATE_SECONDS)
      const scavenges = window.rate('scavenges')
      const majors = window.rate('ordinaryMajors')
      return most && values.length > 0 && scavenges !== null && majors
        ? (Math.min(most.bytes, Math.max(...values)) * scavenges) / majors
        : null
    }
  }),
  oldSpaceSwingBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Range of the used old space over the last ${RATE_SECONDS} s: what came into it ` +
      'between two major GCs, if the live heap is level.',
    compute: window => {
      const { values } = window.points('oldSpaceBytes', RATE_SECONDS)
      return values.length > 0 ? Math.max(...values) - Math.min(...values) : null
    }
  }),
  oldGenerationSwingBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Range of the used old and large-object space over the last ${RATE_SECONDS} s: what ` +
      'came into them between two major GCs, if the live heap is level.',
    compute: window => {
      const { values } = window.points('oldSpaceBytes', RATE_SECONDS)
      const large = window.points('largeObjectSpaceBytes', RATE_SECONDS).values
      const used = values.map((bytes, i) => bytes + (large[i] ?? 0))
      return used.length > 0 ? Math.max(...used) - Math.min(...used) : null
    }
  }),
  keptPerMajorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Mean growth of the live heap from one ordinary major GC to the next, over the last ' +
      `${RATE_SECONDS} s.`,
    compute: window => {
      const live = window.points('liveHeapBytes', RATE_SECONDS).values
      const majors = window.increase('ordinaryMajors')?.increase
      return live.length > 1 && majors ? (live[live.length - 1] - live[0]) / majors : null
    }
  }),
  gcWindowSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Length of the window of these rates, as far as the wait of the thread for a CPU is ' +
      'known. The window is shorter at first.',
    compute: window => {
      const seen = window.increase('scavenges')
      return seen && knownSeconds(window, seen.overSeconds)
    }
  }),
  gcUnobservedRecentlySeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `Time of the last ${RATE_SECONDS} s in which the agent did not observe GCs, because ` +
      'observing them may have caused them. If it is long, most GC signals are unknown.',
    compute: window => {
      const { gcUnobservedSeconds, gcObserverStopped } = window.values
      if (!gcUnobservedSeconds && !gcObserverStopped) return 0
      const seen = window.increase('gcUnobservedSeconds')
      return RATE_SECONDS - (seen ? seen.overSeconds - seen.increase : 0)
    }
  }),
  recentGcs: /** @type {Signal} */ ({
    unit: 'count',
    help: `Scavenges and ordinary major GCs in the last ${RATE_SECONDS} s: the sample size of ` +
      'the rates.',
    compute: window => {
      const scavenges = window.increase('scavenges')
      return scavenges && scavenges.increase + (window.increase('ordinaryMajors')?.increase ?? 0)
    }
  }),
  scavengePauseRatio: pauseRatio('scavengePauseSeconds', 'Share of wall time paused in scavenges.'),
  ordinaryMajorPauseRatio: pauseRatio(
    'ordinaryMajorPauseSeconds',
    'Share of wall time paused in ordinary major GCs and their marking steps.'
  ),
  externalMajorsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: 'Major GCs a second for external memory (Buffers and ArrayBuffers) over the last ' +
      `${RATE_SECONDS} s.`,
    compute: window => window.rate('externalMajors')
  }),
  externalMajorPauseRatio: pauseRatio(
    'externalMajorPauseSeconds',
    'Share of wall time paused in major GCs for external memory.'
  ),
  recentGcPauseRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of wall time paused in GCs of all kinds over the last ${NOW_SECONDS} s, a short ` +
      'window because a process near its heap limit ends soon.',
    compute: window => shareOfWallTime(window, 'gcPauseSeconds', NOW_SECONDS)
  }),
  recentMajorsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: `Ordinary major GCs a second over the last ${NOW_SECONDS} s.`,
    compute: window => window.rate('ordinaryMajors', NOW_SECONDS)
  }),
  majorPauseSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Mean pause of the ordinary major GCs of the last ten minutes, with their marking steps.',
    compute: window => {
      const majors = window.increase('ordinaryMajors', 600)
      const pauses = window.increase('ordinaryMajorPauseSeconds', 600)
      return majors && pauses && majors.increase > 0 ? pauses.increase / majors.increase : null
    }
  }),
  ordinaryMajorsSeen: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Ordinary major GCs of the last ten minutes.',
    compute: window => window.increase('ordinaryMajors', 600)?.increase ?? null
  }),
  gcsLastMinute: /** @type {Signal} */ ({
    unit: 'count',
    expected: 'after the first minute',
    help: 'Scavenges and major GCs of the last minute.',
    compute: window => {
      // Unobserved GCs do not count as zero GCs.
      const scavenges = window.nowSeconds < 60 ? null : window.increase('scavenges', 60)
      return (
        scavenges && scavenges.increase + (window.increase('ordinaryMajors', 60)?.increase ?? 0)
      )
    }
  }),
  gcPauseRatio: pauseRatio('gcPauseSeconds', 'Share of wall time paused in GCs of all kinds.'),
  semiSpaceCapacityBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Present size of one semi-space.',
    compute: window => window.last('semiSpaceCapacityBytes') ?? null
  }),
  semiSpaceMaxBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "Maximum of one semi-space: from the flags, else derived by V8's rule from the memory " +
      'that Node.js reports.',
    compute: window => readSemiSpaceMax(window)?.bytes ?? null
  })
}

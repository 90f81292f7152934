'use strict'

const { median } = require('simple-statistics')
const { DELAY_BOUNDS_SECONDS, PAUSE_ROW, isOwnGc } = require('@memwatch/agent/protocol/frame')
const { histogramQuantile } = require('@memwatch/engine/statistics/histogram')
const { rssAfterLoad } = require('./quiet-part')

/**
 * Figures of a run that comparisons use: one table, in the order in which they are printed. GC
 * figures cover the main thread, like a PerformanceObserver; CPU figures cover the whole process,
 * with its GC threads. A missing figure is null.
 *
 * @typedef {object} Read source of figures
 * @property {import('./gathered').Gathered} gathered
 * @property {import('@memwatch/agent/protocol/frame').Frame['values']} values last values of the
 *   run
 * @property {number} uptimeSeconds uptime at the last frame
 * @property {import('@memwatch/engine/recording/format').Work} work work of the run; {} if unknown
 *
 * @typedef {object} Figure
 * @property {string} title
 * @property {'bytes' | 'seconds' | 'ratio' | 'count' | 'perSecond'} unit
 * @property {(run: Read) => number | null | undefined} read
 */

/**
 * @param {Read} run
 * @param {0 | 1} column 0 counts, 1 pause seconds
 * @param {(kindAndCause: string) => boolean} [accepts] selects keys of the `gc` field
 * @returns {number}
 */
const gc = ({ values }, column, accepts = () => true) =>
  Object.entries(values.gc ?? {}).reduce(
    (sum, [key, row]) => sum + (!isOwnGc(key) && accepts(key) ? row[column] : 0),
    0
  )
/** @param {Read} run */
const cpuSeconds = ({ gathered }) => gathered.cpuSeconds.at(-1) ?? 0
/** @param {string} key */
const isScavenge = key => key.startsWith('minor')
/** @param {number[]} values */
const highest = values => values.reduce((high, value) => Math.max(high, value), 0) || null

const figures = Object.freeze({
  peakRssBytes: /** @type {Figure} */ ({
    title: 'Peak RSS',
    unit: 'bytes',
    read: ({ gathered }) => highest(gathered.rssBytes)
  }),
  rssAfterLoadBytes: /** @type {Figure} */ ({
    title: 'RSS after load',
    unit: 'bytes',
    read: ({ gathered }) => rssAfterLoad(gathered)
  }),
  medianRssBytes: /** @type {Figure} */ ({
    title: 'RSS, median',
    unit: 'bytes',
    read: ({ gathered }) => (gathered.rssBytes.length > 0 ? median(gathered.rssBytes) : null)
  }),
  rssRiseBytes: /** @type {Figure} */ ({
    title: 'Peak RSS above the RSS at start',
    unit: 'bytes',
    read: ({ gathered: { rssBytes } }) =>
      rssBytes.length > 0 ? (highest(rssBytes) ?? 0) - rssBytes[0] : null
  }),
  externalPeakBytes: /** @type {Figure} */ ({
    title: 'Peak Buffers and external memory',
    unit: 'bytes',
    read: ({ gathered }) => gathered.externalBytes
  }),
  cpuSeconds: /** @type {Figure} */ ({ title: 'CPU', unit: 'seconds', read: cpuSeconds }),
  cpuPerRequestSeconds: /** @type {Figure} */ ({
    title: 'CPU per request',
    unit: 'seconds',
    read: run => run.work.requests && cpuSeconds(run) / run.work.requests
  }),
  gcPauseRatio: /** @type {Figure} */ ({
    title: 'Share of time in GC pauses',
    unit: 'ratio',
    read: run => gc(run, 1) / run.uptimeSeconds
  }),
  gcPauseSeconds: /** @type {Figure} */ ({
    title: 'Sum of GC pauses',
    unit: 'seconds',
    read: run => gc(run, 1)
  }),
  gcPausePerRequestSeconds: /** @type {Figure} */ ({
    title: 'GC pauses per request',
    unit: 'seconds',
    read: run => run.work.requests && gc(run, 1) / run.work.requests
  }),
  longestGcPauseSeconds: /** @type {Figure} */ ({
    title: 'Longest GC pause',
    unit: 'seconds',
    read: ({ gathered }) => gathered.longestGcPauseSeconds
  }),
  gcEvents: /** @type {Figure} */ ({
    title: 'GC events, all kinds',
    unit: 'count',
    read: run => gc(run, 0)
  }),
  scavengesPerSecond: /** @type {Figure} */ ({
    title: 'Scavenges',
    unit: 'perSecond',
    read: run => gc(run, 0, isScavenge) / run.uptimeSeconds
  }),
  ordinaryMajorsPerSecond: /** @type {Figure} */ ({
    title: 'Major GCs, ordinary',
    unit: 'perSecond',
    read: run => gc(run, 0, key => key === 'major/ordinary') / run.uptimeSeconds
  }),
  externalMajorsPerSecond: /** @type {Figure} */ ({
    title: 'Major GCs for external memory',
    unit: 'perSecond',
    read: run => gc(run, 0, key => key === 'major/external') / run.uptimeSeconds
  }),
  semiSpaceBytes: /** @type {Figure} */ ({
    title: 'Largest semi-space',
    unit: 'bytes',
    read: ({ gathered }) => gathered.semiSpaceBytes || null
  }),
  newSpaceBytes: /** @type {Figure} */ ({
    title: 'New space, peak',
    unit: 'bytes',
    read: ({ gathered }) => gathered.newSpaceBytes || null
  }),
  delayP99Seconds: /** @type {Figure} */ ({
    title: 'Event loop delay, p99',
    unit: 'seconds',
    read: ({ values: { eventLoopDelay } }) =>
      eventLoopDelay &&
      histogramQuantile(DELAY_BOUNDS_SECONDS, eventLoopDelay[PAUSE_ROW.buckets], 0.99)
  }),
  longestDelaySeconds: /** @type {Figure} */ ({
    title: 'Longest event loop delay',
    unit: 'seconds',
    read: ({ gathered, values }) => values.eventLoopDelay && gathered.longestDelaySeconds
  }),
  requests: /** @type {Figure} */ ({
    title: 'Work done',
    unit: 'count',
    read: ({ work }) => work.requests
  }),
  requestsPerSecond: /** @type {Figure} */ ({
    title: 'Throughput',
    unit: 'perSecond',
    read: ({ work }) => work.requestsPerSecond
  }),
  latencyP99Seconds: /** @type {Figure} */ ({
    title: 'Latency, p99',
    unit: 'seconds',
    read: ({ work }) => work.latencyP99Seconds
  }),
  failures: /** @type {Figure} */ ({
    title: 'Requests that failed',
    unit: 'count',
    read: ({ work }) => work.failures
  }),
  watchedSeconds: /** @type {Figure} */ ({
    title: 'Length of the run',
    unit: 'seconds',
    read: ({ uptimeSeconds }) => uptimeSeconds
  })
})

/** @typedef {keyof typeof figures} FigureName */
const figureNames = /** @type {FigureName[]} */ (Object.keys(figures))

/**
 * @param {Read} run
 * @returns {Record<FigureName, number | null>}
 */
function readFigures (run) {
  return /** @type {any} */ (Object.fromEntries(figureNames.map(name => {
    const value = figures[name].read(run)
    return [name, Number.isFinite(value) ? value : null]
  })))
}

module.exports = { figures, figureNames, readFigures }

'use strict'

const { theilSen } = require('@memwatch/engine/statistics/theil-sen')
const { median } = require('@memwatch/engine/statistics/quantile')

/**
 * Measures of a run that the gate compares. Each measure is one number per run: the readings of one
 * run depend on each other, and different runs do not.
 *
 * @typedef {object} Reading reading after a full GC on command
 * @property {number} seconds uptime of its frame
 * @property {number} cpuSeconds CPU time of the process so far
 * @property {number} majors major GCs of the process so far
 * @property {number} heapBytes live heap
 * @property {number} externalBytes Buffers and other memory outside the heap that V8 counts
 *
 * @typedef {object} GateRun
 * @property {number} seconds uptime at the last frame
 * @property {number} cpuSeconds CPU time of the process at the last frame
 * @property {number | null} requests requests done, as reported by the load or the app; null if
 *   unknown
 * @property {number | null} allocatedBytes allocated bytes as counted by V8; null if Node.js does
 *   not report them
 * @property {Reading[]} readings
 *
 * @typedef {'request' | 'allocatedMiB' | 'cpuSecond'} Per unit of work by which growth is divided
 */

/**
 * Share of a run's readings that belongs to the warm-up: caches fill, and V8 compiles hot
 * functions.
 */
const WARM_UP = 1 / 3
/** A run is measured if it has this many readings after the warm-up. */
const LEAST_READINGS = 8

/**
 * Units of growth, the best first.
 * @type {Readonly<Record<Per, { title: string, toleratedBytes: number,
 *   done: (run: GateRun) => number | null }>>}
 */
const pers = Object.freeze({
  request: {
    title: 'request',
    toleratedBytes: 100,
    done: ({ requests }) => requests
  },
  allocatedMiB: {
    title: 'MiB allocated',
    toleratedBytes: 2048,
    done: ({ allocatedBytes }) => allocatedBytes === null ? null : allocatedBytes / 2 ** 20
  },
  cpuSecond: { title: 'CPU second', toleratedBytes: 131_072, done: ({ cpuSeconds }) => cpuSeconds }
})

/**
 * @param {readonly GateRun[]} runs runs of both sides
 * @returns {Per} the best unit that all of them have
 */
const choosePer = runs => /** @type {Per} */ (Object.keys(pers).find(per =>
  runs.every(run => (pers[/** @type {Per} */ (per)].done(run) ?? 0) > 0)))

/**
 * @typedef {object} Measure
 * @property {string} title
 * @property {'growth' | 'level'} kind
 * @property {(after: Reading[], workPerReading: number) => number} read after: readings after the
 *   warm-up; the result is in bytes, or bytes per unit of work
 */

/**
 * Growth per reading. On a busy machine work and readings both become rarer, so growth per reading
 * varies less (28 bytes per job) than growth over time (34) or CPU time (47): docs/gate.md.
 * @param {(reading: Reading) => number} read
 */
const growth = read => (/** @type {Reading[]} */ after, /** @type {number} */ workPerReading) =>
  (theilSen(after.map((_, i) => i), after.map(read))?.slope ?? 0) / workPerReading

/** @type {Readonly<Record<string, Measure>>} */
const measures = Object.freeze({
  heapGrowth: {
    title: 'Growth of the live heap',
    kind: 'growth',
    read: growth(({ heapBytes }) => heapBytes)
  },
  externalGrowth: {
    title: 'Growth of Buffers and external memory',
    kind: 'growth',
    read: growth(({ externalBytes }) => externalBytes)
  },
  heapLevel: {
    title: 'Live heap at the end',
    kind: 'level',
    read: after =>
      median(after.slice(Math.floor(after.length / 2)).map(({ heapBytes }) => heapBytes))
  }
})

/** @typedef {Record<string, number>} Measured values by name of the measure */

/** @param {GateRun} run */
const afterWarmUp = ({ readings }) => readings.slice(Math.ceil(readings.length * WARM_UP))

/** @param {GateRun} run */
const isMeasurable = run => afterWarmUp(run).length >= LEAST_READINGS

/**
 * @param {GateRun} run a run with enough readings
 * @param {Per} per
 * @returns {Measured}
 */
function measureRun (run, per) {
  const workPerReading = /** @type {number} */ (pers[per].done(run)) / run.readings.length
  return Object.fromEntries(Object.entries(measures).map(([name, { read }]) =>
    [name, read(afterWarmUp(run), workPerReading)]))
}

module.exports = { measures, measureRun, isMeasurable, choosePer, pers, LEAST_READINGS, WARM_UP }

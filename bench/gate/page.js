'use strict'

const { judge } = require('../../cli/gate')
const { isMeasurable, measureRun } = require('../../cli/gate/measures')

/** Number of trials for each series, each drawn from the runs of the series. */
const TRIALS = 200
const BASELINE_RUNS = 8
const LOOKS = 5
const RATE = 0.01

/**
 * @typedef {import('../../cli/gate/measures').GateRun} GateRun
 * @typedef {{ series: string, run: GateRun, node: string }} Row
 * @typedef {{ series: string, trials: number, runs: number, pass: number, worse: number,
 *   undecided: number, meanRuns: number }} Counted
 */

/**
 * Random numbers that are the same each time: a linear congruential generator.
 * @param {number} seed
 */
function draws (seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}

/**
 * @template T
 * @param {readonly T[]} all
 * @param {number} count
 * @param {(below: number) => number} draw
 * @returns {T[]} different items
 */
function pick (all, count, draw) {
  const left = [...all]
  return Array.from({ length: count }, () => left.splice(draw(left.length), 1)[0])
}

/**
 * Simulates gates of one series against baselines of quiet runs.
 * @param {string} series
 * @param {Row[]} rows
 * @returns {Counted}
 */
function countSeries (series, rows) {
  const measurable = (/** @type {string} */ name) =>
    rows.filter(row => row.series === name && isMeasurable(row.run)).map(({ run }) => run)
  const quiet = measurable('quiet')
  const own = measurable(series)
  const draw = draws(series.length + own.length)
  const counted = {
    series, trials: TRIALS, runs: own.length, pass: 0, worse: 0, undecided: 0, meanRuns: 0
  }
  for (let trial = 0; trial < TRIALS; trial++) {
    const drawn = pick(quiet, BASELINE_RUNS + (series === 'quiet' ? LOOKS : 0), draw)
    const baseline = drawn.slice(0, BASELINE_RUNS)
    const candidates = series === 'quiet' ? drawn.slice(BASELINE_RUNS) : pick(own, LOOKS, draw)
    for (let look = 1; look <= LOOKS; look++) {
      const { outcome } = judge(baseline, candidates.slice(0, look), { runs: LOOKS, rate: RATE })
      if (outcome === 'undecided' && look < LOOKS) continue
      counted[/** @type {'pass'} */ (outcome)]++
      counted.meanRuns += look / TRIALS
      break
    }
  }
  return counted
}

const TITLES = /** @type {Record<string, string>} */ ({
  quiet: 'the same code (A/A)', loaded: 'the same code (A/A), a busy process on each core beside it'
})

/** @param {string} series */
const titleOf = series => {
  const [, kind, bytes] = /^(leak|buffer)-(\d+)$/.exec(series) ?? []
  return TITLES[series] ?? `a leak of ${bytes} bytes per job${kind === 'buffer' ? ' in a Buffer' : ''}`
}

/**
 * Builds the tables of docs/gate.md.
 * @param {Row[]} rows
 * @returns {string}
 */
function gateTables (rows) {
  const names = [...new Set(rows.map(({ series }) => series))].filter(name =>
    rows.filter(({ series, run }) => series === name && isMeasurable(run)).length >= LOOKS)
  const counted = names.map(name => countSeries(name, rows))
  const percent = (/** @type {number} */ count) => `${(100 * count / TRIALS).toFixed(1)} %`
  const quiet = rows.filter(({ series, run }) => series === 'quiet' && isMeasurable(run))
  const growth = quiet.map(({ run }) => measureRun(run, 'request').heapGrowth)
  const mean = growth.reduce((sum, value) => sum + value, 0) / growth.length
  const deviation = Math.sqrt(
    growth.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (growth.length - 1)
  )
  return [
    '| runs | real runs | gates | pass | worse | undecided | runs a gate |',
    '|---|---|---|---|---|---|---|',
    ...counted.map(({ series, runs, pass, worse, undecided, meanRuns }) =>
      `| ${titleOf(series)} | ${runs} | ${TRIALS} | ${percent(pass)} | ${percent(worse)} | ` +
        `${percent(undecided)} | ${meanRuns.toFixed(1)} |`),
    '',
    `Node.js ${rows[0].node}, ${rows.length} runs. Growth of the live heap per job varies between ` +
      `runs of the same code by ${deviation.toFixed(0)} bytes (standard deviation).`
  ].join('\n')
}

module.exports = { gateTables, countSeries }

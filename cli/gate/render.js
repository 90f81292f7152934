'use strict'

const { formatBytes, formatNumber, formatRatio } = require('@memwatch/engine/text/format')
const { measures, pers } = require('./measures')

/**
 * Result of `memwatch gate --json`.
 * @typedef {object} Result
 * @property {1} schema
 * @property {keyof typeof STATUS} outcome
 * @property {string | null} reason sentence for an outcome without a comparison
 * @property {string[]} command
 * @property {number} runs number of runs of the candidate
 * @property {number} looks upper bound of runs
 * @property {number} baselineRuns
 * @property {number} rate rate of false alarms and of misses, 0–1
 * @property {import('./measures').Per | null} per unit of work by which growth is divided
 * @property {import('./sequential-test').Compared[]} compared
 * @property {string[]} warnings
 * @property {number} seconds duration of the gate
 */

/** Exit status for each outcome. */
const STATUS = Object.freeze({
  pass: 0, written: 0, worse: 3, nothing_seen: 4, failed: 5, undecided: 6
})
/** @type {Readonly<Record<keyof typeof STATUS, 'green' | 'red' | 'yellow'>>} */
const STYLES = Object.freeze({
  pass: 'green',
  written: 'green',
  worse: 'red',
  nothing_seen: 'red',
  failed: 'red',
  undecided: 'yellow'
})

/** @type {Readonly<Record<keyof typeof STATUS, string>>} */
const HEADLINES = Object.freeze({
  pass: 'Pass: no measure is worse than the baseline by more than its tolerance.',
  written: 'The baseline is written.',
  worse: 'Worse: memory grows or stays higher than in the baseline, by more than the tolerance.',
  nothing_seen: 'Nothing was measured, so the gate decides nothing.',
  failed: 'The command failed, so the gate decides nothing.',
  undecided: 'Undecided: the runs vary too much for this tolerance.'
})

/** @param {number} bytes */
const fine = bytes => Math.abs(bytes) < 1000
  ? `${formatNumber(bytes)} B`
  : Math.abs(bytes) < 2 ** 20 ? `${formatNumber(bytes / 1024)} KiB` : formatBytes(bytes)

/**
 * Describes one measure in a sentence.
 * @param {import('./sequential-test').Compared} row
 * @param {Pick<Result, 'per'>} result
 */
function describeCompared (row, { per }) {
  const isGrowth = measures[row.measure].kind === 'growth'
  const unit = isGrowth && per ? ` per ${pers[per].title}` : ''
  const { baseline, candidate, lower, upper, tolerance, outcome } = row
  const bounds = outcome === 'worse'
    ? `at least ${fine(lower)} more`
    : outcome === 'pass' && upper <= 0 ? 'no more' : `at most ${fine(upper)} more`
  return `${measures[row.measure].title}: ${fine(candidate)}${unit}, in the baseline ` +
    `${fine(baseline)}; ${bounds}, and ${fine(tolerance)} is tolerated: ${outcome}`
}

/**
 * @param {Result} result
 * @returns {import('../text/terminal').Line[]}
 */
function renderResult (result) {
  const { outcome, reason, runs, looks, baselineRuns, rate, compared, warnings } = result
  return [
    { text: HEADLINES[outcome], style: STYLES[outcome] },
    ...reason === null ? [] : [`  ${reason}`],
    ...compared.map(row => `  ${describeCompared(row, result)}`),
    ...compared.length === 0
      ? []
      : [`  ${runs} of at most ${looks} runs, against ${baselineRuns} of the baseline. Rate of ` +
          'false alarms, and of missed differences beyond the tolerance: at most ' +
          `${formatRatio(rate)}.`],
    ...outcome === 'undecided'
      ? ['  Longer runs vary less (--for, with a new baseline). More runs decide more often ' +
        '(--runs).']
      : [],
    ...warnings.map(text => ({ text: `  Warning: ${text}`, style: /** @type {const} */ ('yellow') }))
  ]
}

module.exports = { renderResult, describeCompared, STATUS }

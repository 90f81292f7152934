'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')
const { isApplied } = require('@memwatch/engine/verdicts/applied')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { outcomesOf, readPredicted } = require('@memwatch/engine/verdicts/outcome')
const { figures, figureNames } = require('./figures')
const { spreadOf, isApart } = require('./spread')

/**
 * Comparison of runs before and after a change: the result of `memwatch compare --json` and
 * `memwatch try --json`.
 *
 * @typedef {object} Comparison
 * @property {1} schema
 * @property {Side} before
 * @property {Side} after
 * @property {Row[]} rows figures that at least one side has
 * @property {Tried | null} fix fix that the first run of `before` recommends, or that was tried
 * @property {Change[]} verdicts diagnoses that are confirmed on at least one side
 *
 * @typedef {object} Side
 * @property {RunSummary[]} runs
 *
 * @typedef {object} RunSummary
 * @property {string} recording file of the recording
 * @property {string[]} command
 * @property {string | null} target name of the compared target; null if no process reported
 * @property {string | null} thread
 * @property {string | null} node
 * @property {string | null} allocator
 * @property {import('./measure').Run['exit']} exit
 * @property {boolean} cut
 * @property {string | null} primary id of the primary diagnosis
 *
 * @typedef {object} Row
 * @property {import('./figures').FigureName} figure
 * @property {string} title
 * @property {string} unit
 * @property {import('./spread').Spread | null} before
 * @property {import('./spread').Spread | null} after
 * @property {number | null} changeRatio relative change of the medians: −0.31 is 31 % less
 * @property {boolean | null} beyondNoise true if the ranges do not overlap; null if a side
 *   has only one run
 *
 * @typedef {object} Tried
 * @property {string | null} diagnosis null if the change was given without a finding
 * @property {string} title
 * @property {import('@memwatch/engine/diagnoses/define-diagnosis').Change} change
 * @property {boolean | null} applied true if all runs after had the change; null if the change is
 *   not visible, like a change of code
 * @property {import('@memwatch/engine/verdicts/outcome').Outcome[]} outcomes
 *
 * @typedef {object} Change
 * @property {string} diagnosis
 * @property {'gone' | 'came' | 'stayed'} change
 * @property {number} before number of runs on which it was confirmed
 * @property {number} after
 */

/**
 * @typedef {import('./measure').Run} Run
 * @param {Run[]} before
 * @param {Run[]} after runs; may be empty if there is nothing to compare
 * @param {{ diagnosis: string | null, fix:
 *   import('@memwatch/engine/diagnoses/define-diagnosis').Fix }} [tried] the fix that was applied.
 *   Default: of the fixes that the primary verdict of the first run before recommends, the first
 *   with which the runs after were made
 * @returns {Comparison}
 */
function compare (before, after, tried = recommended(before, after)) {
  return {
    schema: 1,
    before: { runs: before.map(summaryOf) },
    after: { runs: after.map(summaryOf) },
    rows: figureNames
      .map(name => rowOf(name, before, after))
      .filter(row => row.before || row.after),
    fix: tried
      ? {
          diagnosis: tried.diagnosis,
          title: tried.fix.title,
          change: tried.fix.change,
          applied: appliedTo(tried.fix, after),
          outcomes: after.length > 0 ? measureOutcomes(tried.fix, before, after) : []
        }
      : null,
    verdicts: before.length > 0 && after.length > 0 ? changesOf(before, after) : []
  }
}

/**
 * @param {import('./figures').FigureName} name
 * @param {Run[]} before
 * @param {Run[]} after
 * @returns {Row}
 */
function rowOf (name, before, after) {
  const [was, is] = [before, after].map(runs => spreadOf(runs.map(({ figures }) => figures[name])))
  return {
    figure: name,
    title: figures[name].title,
    unit: figures[name].unit,
    before: was,
    after: is,
    changeRatio: was && is && was.median !== 0 ? (is.median - was.median) / was.median : null,
    beyondNoise: isApart(was, is)
  }
}

/**
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix} fix
 * @param {Run[]} before
 * @param {Run[]} after
 */
function measureOutcomes ({ predicted }, before, after) {
  const [was, is] = [before, after].map(runs => runs.map(run =>
    ({ values: readPredicted(run.target, predicted), pace: paceOf(run) })))
  return outcomesOf(predicted, was, is)
}

/** Requests per second; NaN if the run does not report them. @param {Run} run */
const paceOf = ({ work: { requests, requestsPerSecond }, figures: { watchedSeconds } }) =>
  requestsPerSecond ?? (requests ?? NaN) / (watchedSeconds ?? NaN)

/**
 * @param {Run[]} before
 * @param {Run[]} after
 */
function recommended (before, after) {
  const primary = before
    .map(({ target }) => target && primaryOf(findCase(target).verdicts)).find(Boolean)
  if (!primary) return undefined
  const fix = primary.fix.find(fix => appliedTo(fix, after)) ?? primary.fix[0]
  return fix && { diagnosis: primary.diagnosis, fix }
}

/**
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix} fix
 * @param {Run[]} runs
 */
function appliedTo ({ change }, runs) {
  const seen = runs.map(({ target }) => target && isApplied(change, target.hello))
  return seen.includes(false) ? false : seen.includes(null) || seen.length === 0 ? null : true
}

/**
 * @param {Run[]} before
 * @param {Run[]} after
 * @returns {Change[]}
 */
function changesOf (before, after) {
  const confirmed = (/** @type {Run} */ { target }) => (target ? findCase(target).verdicts : [])
    .filter(({ state, opportunity }) => state === 'confirmed' && !opportunity)
    .map(({ diagnosis }) => diagnosis)
  const [was, is] = [before, after].map(runs => runs.map(confirmed))
  return [...new Set([...was, ...is].flat())].map(diagnosis => {
    const [had, has] = [was, is].map(runs => runs.filter(found => found.includes(diagnosis)).length)
    return {
      diagnosis,
      change: had > 0 && has > 0 ? 'stayed' : had > 0 ? 'gone' : 'came',
      before: had,
      after: has
    }
  })
}

/**
 * @param {Run} run
 * @returns {RunSummary}
 */
function summaryOf ({ file, command, exit, cut, target }) {
  return {
    recording: file,
    command,
    target: target?.name ?? null,
    thread: target?.thread ?? null,
    node: target?.hello.node ?? null,
    allocator: target?.hello.allocator ?? null,
    exit,
    cut,
    primary: target ? primaryOf(findCase(target).verdicts)?.diagnosis ?? null : null
  }
}

module.exports = { compare }

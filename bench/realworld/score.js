'use strict'

const fs = require('node:fs')
const { LEAST_SHARE, NAMED_SITES } = require('../../engine/text/suspect-text')

/** @typedef {import('./cases').Run} Run */
/** @typedef {import('./watch').Watched} Watched */

/**
 * One run in results.json.
 * @typedef {object} Row
 * @property {string} case
 * @property {Run['form']} form
 * @property {string} at ISO date
 * @property {string} memwatch commit
 * @property {string} node version
 * @property {string} label
 * @property {Record<string, string>} packages
 * @property {number | null} limitMib
 * @property {number} seconds the run took
 * @property {{ state: string, diagnosis: string | null, severity: string | null, text: string }}
 *   headline at the end
 * @property {boolean} right true: the headline names the expected diagnosis; for fixed and healthy
 *   ones: nothing was confirmed
 * @property {number | null} suspectedSeconds
 * @property {number | null} confirmedSeconds
 * @property {string[]} suspects named beside the finding
 * @property {'right' | 'wrong' | 'none' | null} suspect null if no suspect can be right
 * @property {string[]} confirmed all confirmed diagnoses of the run, without opportunities
 * @property {string[]} suspected
 * @property {string | null} ended how the program ended, if it ended too early
 * @property {string | null} failed reason for a missing result
 */

const RANK = ['confirmed', 'suspected', 'undecided', 'limited', 'ok']

/**
 * @param {Run} run
 * @param {Watched} watched
 * @returns {Pick<Row, 'seconds' | 'headline' | 'right' | 'suspectedSeconds' | 'confirmedSeconds' |
 *   'suspects' | 'suspect' | 'confirmed' | 'suspected' | 'ended' | 'failed'>}
 */
function score ({ form, file, expect, culprit }, { report, changes }) {
  const found = changes.filter(({ opportunity }) => !opportunity)
  const secondsTo = (/** @type {string[]} */ states) =>
    found.find(({ state, diagnosis }) => states.includes(state) && expect.includes(diagnosis))
      ?.seconds ?? null
  const idsOf = (/** @type {string} */ wanted) => [
    ...new Set(found.filter(({ state }) => state === wanted)
      .map(({ diagnosis, severity }) => severity === 'info' ? `${diagnosis} (info)` : diagnosis))
  ]
  const target = worstOf(report.targets, expect)
  const headline = target?.headline ?? {
    state: 'undecided', diagnosis: null, severity: null, text: 'No process reported.'
  }
  const sites = target?.verdicts.find(({ diagnosis }) => diagnosis === headline.diagnosis)
    ?.suspects?.suspects.sites ?? []
  const named = sites.filter(({ share }) => share >= LEAST_SHARE).slice(0, NAMED_SITES)
  const isFound = headline.diagnosis !== null && expect.includes(headline.diagnosis)
  const confirmed = idsOf('confirmed')
  return {
    seconds: round(report.durationSeconds),
    headline: {
      state: headline.state,
      diagnosis: headline.diagnosis,
      severity: headline.severity,
      text: headline.text
    },
    right: form === 'leaky' ? isFound : confirmed.length === 0,
    suspectedSeconds: roundOrNull(secondsTo(['suspected', 'confirmed'])),
    confirmedSeconds: roundOrNull(secondsTo(['confirmed'])),
    suspects: named.map(({ text }) => text),
    suspect: suspectOf(culprit, named, file),
    confirmed,
    suspected: idsOf('suspected'),
    ended: endOf(report),
    failed: target ? null : 'no process reported'
  }
}

/**
 * @param {RegExp | null} culprit
 * @param {{ function: string, file: string, line: number, text: string }[]} named
 * @param {string} caseFile file whose lines also count, as its functions may have no name
 * @returns {Row['suspect']}
 */
function suspectOf (culprit, named, caseFile) {
  if (culprit === null) return null
  if (named.length === 0) return 'none'
  const lines = fs.readFileSync(caseFile, 'utf8').split('\n')
  const isCulprit = named.some(({ function: name, file, line, text }) =>
    culprit.test(`${name} ${file} ${text} ${file === 'case.js' ? lines[line - 1] : ''}`))
  return isCulprit ? 'right' : 'wrong'
}

/**
 * The target with the expected finding, else the one with the worst headline.
 * @param {Watched['report']['targets']} targets
 * @param {string[]} expect
 */
function worstOf (targets, expect) {
  const rank = (/** @type {Watched['report']['targets'][number]} */ { headline, thread }) =>
    RANK.indexOf(headline.state) + (thread === 'main' ? 0 : 0.5) -
    (headline.diagnosis !== null && expect.includes(headline.diagnosis) ? RANK.length : 0)
  return [...targets].sort((a, b) => rank(a) - rank(b))[0]
}

/**
 * @param {Watched['report']} report
 * @returns {string | null}
 */
function endOf ({ deaths, exit }) {
  const [death] = deaths
  if (death) return death.reason
  if (exit.signal !== null && exit.signal !== 'SIGTERM') return exit.signal
  return exit.code ? `status ${exit.code}` : null
}

/** @param {number} value */
const round = value => Math.round(value)
/** @param {number | null} value */
const roundOrNull = value => value === null ? null : round(value)

module.exports = { score }

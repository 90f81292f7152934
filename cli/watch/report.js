'use strict'

const { ReportText, SHORTER } = require('./report-text')

/**
 * Most lines of a report: a screen of 40 lines also shows an empty line and the prompt. A longer
 * report is shortened, except with -v.
 */
const MOST_LINES = 38

/** @typedef {import('../text/terminal').Line} Line */
/**
 * @typedef {object} Ended an isolate whose process ended before the report
 * @property {number} pid
 * @property {string} thread
 * @property {number} afterSeconds age at the last frame
 */

/**
 * Renders the report for a terminal: finding, evidence, fix, expected effect.
 *
 * @param {import('./watch-command').Report} report
 * @param {{ width?: number, verbose?: boolean, ended?: readonly Ended[], isOver?: boolean }}
 *   [options] verbose: print every finding with all its evidence and fixes, and the checks without
 *   a finding; isOver: true if the command ended by itself, as a batch program does
 * @returns {Line[]}
 */
function renderReport (
  report,
  { width = 100, verbose = false, ended = [], isOver = false } = {}
) {
  const steps = verbose ? [0] : [0, ...Object.values(SHORTER)]
  /** @type {Line[]} */
  let lines = []
  for (const shorter of steps) {
    lines = renderLines(report, new ReportText(width, verbose, shorter), { ended, isOver })
    if (lines.length <= MOST_LINES) break
  }
  return lines
}

/**
 * @param {import('./watch-command').Report} report
 * @param {ReportText} text
 * @param {{ ended: readonly Ended[], isOver: boolean }} options
 */
function renderLines (report, text, { ended, isOver }) {
  text.addEnd(report)
  const deaths = report.deaths.filter(({ reason }) => reason !== 'clean')
  for (const target of inReadingOrder(report.targets)) {
    const died = deaths.some(({ pid, thread }) =>
      pid === target.pid && (thread === 'main' || thread === target.thread))
    const end = ended.find(({ pid, thread }) => pid === target.pid && thread === target.thread)
    text.addTarget(target, {
      source: report.source, died, isOver, endedAfterSeconds: end?.afterSeconds
    })
  }
  if (report.source) text.addSource(report.source)
  return text.lines
}

/** Headlines with a finding, in the order of the report. */
const FOUND = ['confirmed', 'suspected']

/**
 * Orders targets: those with a finding come first, then main threads, then workers. A batch program
 * ends its workers before anything can be decided about them.
 * @param {import('./watch-command').Report['targets']} targets
 */
function inReadingOrder (targets) {
  const rank = (/** @type {typeof targets[number]} */ { thread, headline: { state } }) => {
    const found = FOUND.includes(state) ? FOUND.indexOf(state) : FOUND.length
    return 2 * found + Number(thread !== 'main')
  }
  return targets.toSorted((a, b) => rank(a) - rank(b))
}

/**
 * Renders one target of the report.
 * @param {import('./watch-command').JudgedTarget} target
 * @param {{ width: number }} options
 * @returns {Line[]}
 */
function renderTarget (target, { width }) {
  const text = new ReportText(width, false)
  text.addTarget(target, { died: false })
  return text.lines
}

module.exports = { renderReport, renderTarget }

'use strict'

const { ReportText, SHORTER } = require('./report-text')

/**
 * Most lines of a report: a screen of 40 lines also shows an empty line and the prompt. A longer
 * report is shortened, except with -v.
 */
const MOST_LINES = 38

/** @typedef {import('../text/terminal').Line} Line */
/** @typedef {import('./watch-command').Report} Report */
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
    const text = new ReportText(width, verbose, shorter)
    lines = renderLines(report, text, { ended, isOver, verbose })
    if (lines.length <= MOST_LINES) break
  }
  return lines
}

/** Ends without a problem of memory. */
const QUIET_ENDS = ['clean', 'killed', 'signal']
/** A process with a shorter life is too young for most checks. */
const SHORT_SECONDS = 10
/** From this number on, short processes are reported together, as those of a test runner. */
const MANY_SHORT = 4

/**
 * Finds short processes without a finding, if there are many.
 * @param {Report} report
 * @returns {Report['deaths']} ends of their main threads
 */
function findShort ({ deaths, targets }) {
  const isOpen = (/** @type {number} */ pid) => targets.every(target =>
    target.pid !== pid || target.headline.state === 'undecided')
  const short = deaths.filter(({ pid, thread, reason, startedAtUnixMs, diedAtUnixMs }) =>
    thread === 'main' && QUIET_ENDS.includes(reason) &&
    diedAtUnixMs - startedAtUnixMs < 1000 * SHORT_SECONDS && isOpen(pid))
  return short.length >= MANY_SHORT ? short : []
}

/**
 * @param {Report} report
 * @param {ReportText} text
 * @param {{ ended: readonly Ended[], isOver: boolean, verbose: boolean }} options
 */
function renderLines (report, text, { ended, isOver, verbose }) {
  const short = verbose ? [] : findShort(report)
  const isShort = (/** @type {{ pid: number }} */ { pid }) => short.some(end => end.pid === pid)
  text.addEnd({ ...report, deaths: report.deaths.filter(end => !isShort(end)) })
  const deaths = report.deaths.filter(({ reason }) => reason !== 'clean')
  for (const target of inReadingOrder(report.targets)) {
    if (isShort(target)) continue
    const died = deaths.some(({ pid, thread }) =>
      pid === target.pid && (thread === 'main' || thread === target.thread))
    const end = ended.find(({ pid, thread }) => pid === target.pid && thread === target.thread)
    text.addTarget(target, {
      source: report.source, died, isOver, endedAfterSeconds: end?.afterSeconds
    })
  }
  if (short.length > 0) text.addShort(short, SHORT_SECONDS)
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

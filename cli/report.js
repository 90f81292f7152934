'use strict'

const { formatBytes, formatRatio, formatSeconds, formatValue } = require('memwatch-engine/text/format')
const { shellWords } = require('memwatch-engine/text/shell')
const { wrap } = require('./text/wrap')
const { pasteLine } = require('memwatch-engine/fixes/paste-line')

/** Lines of code that are named for a verdict. */
const MOST_SUSPECTS = 3

/** Only what was ruled out is green. */
const STYLES = Object.freeze(/** @type {const} */ ({
  confirmed: 'red', suspected: 'yellow', undecided: 'yellow', limited: 'bold', ok: 'green'
}))

/** @typedef {import('./text/terminal').Line} Line */
/**
 * @typedef {ReturnType<typeof import('memwatch-exporter/expose/targets').judgedTarget>['verdicts'][number]}
 *   JudgedVerdict
 */

/**
 * The report as a person reads it: finding, evidence, fix, what to expect.
 *
 * @param {import('./watch-command').Report} report
 * @param {{ width?: number }} [options]
 * @returns {Line[]}
 */
function renderReport (report, { width = 100 } = {}) {
  /** @type {Line[]} */
  const lines = []
  /**
   * @param {Line} line
   * @param {number} [indent]
   */
  const say = (line, indent) =>
    lines.push(
      ...(typeof line === 'string'
        ? wrap(line, width, indent)
        : wrap(line.text, width, indent).map(text => ({ ...line, text })))
    )

  const { source } = report
  const exit = source
    ? source.title
    : report.exit.signal
      ? `ended by ${report.exit.signal}`
      : `exit status ${report.exit.code}`
  say(`memwatch: ${report.command.join(' ')} – ${formatSeconds(report.durationSeconds)}, ${exit}`)
  for (const note of source?.notes ?? []) say({ text: note, style: 'yellow' })
  if (source && report.targets.length === 0) say('It tells of no process.')
  const { ending } = report
  if (ending) {
    say({ text: ending.text, style: 'red' })
    if (ending.advice) say(ending.advice)
  } else if (!source && report.targets.length === 0) {
    say(
      'No Node.js process reported. It may have ended within its first second, or NODE_OPTIONS ' +
        'was not passed on to it.'
    )
  }
  for (const { target, thread, pid, reason, text, advice } of [...report.deaths].reverse()) {
    if (reason !== 'clean') say({ text: `${target} ${thread}, pid ${pid}: ${text}`, style: 'red' })
    if (advice) say(advice)
  }
  for (const target of report.targets) {
    lines.push('')
    say({
      text: `${target.target} ${target.thread}, pid ${target.pid}, Node ${target.node}`,
      style: 'bold'
    })
    const { diagnosis: first } = target.headline
    const found = target.verdicts
      .filter(({ state }) => state === 'confirmed' || state === 'suspected')
      .sort((a, b) => Number(b.diagnosis === first) - Number(a.diagnosis === first))
    say({ text: target.headline.text, style: STYLES[target.headline.state] }, 2)
    for (const verdict of found) renderVerdict(verdict, target.headline)
    if (target.memory) renderMemory(target.memory)
    for (const { diagnosis, state, summary } of target.verdicts) {
      if (source?.cannotTell.some(beyond => beyond.diagnosis === diagnosis)) continue
      if (state === 'ok') say(`ruled out  ${diagnosis}: ${summary}`, 2)
      if (state === 'unknown') say(`not known  ${diagnosis}: ${summary}`, 2)
    }
  }
  if (source) renderSource(source)
  return lines

  /** @param {import('./sources').Told} told */
  function renderSource ({ title, lacks, cannotTell, limited }) {
    lines.push('')
    for (const { diagnosis, text } of limited) {
      say(diagnosis === null ? text : `${diagnosis}: ${text}`)
    }
    if (cannotTell.length === 0) return
    say(
      `This source cannot tell: ${cannotTell.map(({ diagnosis }) => diagnosis).join(', ')}. ` +
        `${title[0].toUpperCase()}${title.slice(1)} says nothing of ${lacks}. An agent can ` +
          'tell: memwatch run -- node server.js'
    )
  }

  /**
   * @param {NonNullable<ReturnType<typeof import('memwatch-exporter/expose/targets').judgedTarget>['memory']>}
   *   memory
   */
  function renderMemory ({ rssBytes, parts, unknown }) {
    lines.push('')
    say(`Where the ${formatBytes(rssBytes)} of RSS are`, 2)
    const shown = parts.filter(({ bytes }) => bytes >= 0.001 * rssBytes)
    const widest = Math.max(...shown.map(({ title }) => title.length))
    for (const { title, bytes } of shown) {
      const share = bytes / rssBytes
      lines.push(
        `    ${title.padEnd(widest)} ${formatBytes(bytes).padStart(9)} ${formatRatio(share).padStart(6)}  ${'█'.repeat(Math.round(24 * share))}`.trimEnd()
      )
    }
    if (unknown) say(`Not known: ${unknown}.`, 4)
    lines.push('')
  }

  /**
   * @param {JudgedVerdict} verdict
   * @param {import('memwatch-engine/verdicts/headline').Headline} headline holds the summary of its verdict
   */
  function renderVerdict (verdict, headline) {
    lines.push('')
    const since =
      verdict.confirmedAfterSeconds === null
        ? ''
        : ` after ${formatSeconds(verdict.confirmedAfterSeconds)}`
    const word = verdict.opportunity
      ? `OPPORTUNITY${verdict.state === 'confirmed' ? '' : ', not certain'}`
      : `${verdict.state.toUpperCase()}${since}`
    say(
      {
        text: `${word}: ${verdict.title} (${verdict.diagnosis}, ${verdict.severity})`,
        style: verdict.opportunity ? 'cyan' : verdict.state === 'confirmed' ? 'red' : 'yellow'
      },
      2
    )
    if (verdict.diagnosis !== headline.diagnosis) say(verdict.summary, 2)
    if (verdict.impact) say(`Impact: ${verdict.impact}`, 2)
    say('Evidence', 2)
    for (const { text } of verdict.evidence) say(`- ${text}`, 4)
    if (verdict.suspects) {
      say(`Suspects, by a ${verdict.suspects.kind}`, 2)
      for (const { text } of verdict.suspects.suspects.sites.slice(0, MOST_SUSPECTS)) {
        say(`- ${text}`, 4)
      }
    }
    verdict.fix.forEach((fix, i) => {
      say({ text: `${i === 0 ? 'Fix' : 'Or'}: ${fix.title}`, style: 'bold' }, 2)
      const { code, dockerfile, kubernetes, env, flag, note } = fix.change
      if (code) say(code, 6)
      const pasted = dockerfile ?? (env || (flag && !code) ? pasteLine(fix) : kubernetes)
      if (pasted) lines.push(...pasted.split('\n').map(line => `      ${line}`))
      if (flag && pasted !== flag) {
        lines.push(`      or on the command line: node ${shellWords(flag)}`)
      }
      if (note) say(note, 6)
      for (const { signal, from, to, unit } of fix.predicted) {
        say(`expect ${signal} from ${formatValue(from, unit)} to about ${formatValue(to, unit)}`, 6)
      }
      say(`Mind: ${fix.risk}`, 6)
    })
    if (verdict.runbook) say(`Runbook: ${verdict.runbook}`, 2)
    lines.push('')
  }
}

module.exports = { renderReport }

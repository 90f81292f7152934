'use strict'

const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const {
  formatBytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('@memwatch/engine/text/format')
const { shellWords } = require('@memwatch/engine/text/shell')
const { MOST_PILES } = require('@memwatch/engine/verdicts/holders')
const { loadedAddonsText } = require('@memwatch/engine/text/addons-text')
const { packagesText, sourceText } = require('@memwatch/engine/text/suspect-text')
const { reasons } = require('@memwatch/exporter/deaths/reasons')
const { runbookOf } = require('../text/runbook')
const { wrap } = require('../text/wrap')

/** Upper bound of the suspects that are printed for a verdict. */
const MOST_SUSPECTS = 3
/** Least share of RSS of a listed part: with -v, without -v, and in a shortened report. */
const LEAST_SHARE = 0.001
const LEAST_SHOWN_SHARE = 0.01
const LEAST_LARGE_SHARE = 0.05
/** Length of the bar of a part that is all of RSS. */
const BAR_LENGTH = 24
/** Upper bound of lines of evidence without -v. */
const MOST_EVIDENCE = 3
/**
 * Steps that shorten a report; each step includes the earlier ones. In this order, they omit small
 * parts of RSS, repeated suspects, details of the evidence, other findings, all parts of RSS, and
 * all evidence.
 */
const SHORTER = Object.freeze({
  smallParts: 1, repeated: 2, details: 3, others: 4, parts: 5, evidence: 6
})
/** A command that fails so early probably never ran its app, for example without its script. */
const EARLY_SECONDS = 10
/** Upper bound of known bugs that are described for a verdict without -v. */
const MOST_KNOWN_BUGS = 3

/** Styles of states. Green is used only for ruled out checks. */
const STYLES = Object.freeze(/** @type {const} */ ({
  confirmed: 'red', suspected: 'yellow', undecided: 'yellow', limited: 'bold', ok: 'green'
}))

/** @typedef {import('../text/terminal').Line} Line */
/** @typedef {import('./watch-command').JudgedTarget['verdicts'][number]} JudgedVerdict */

/** @param {import('./watch-command').Attached} attached */
function titleOf ({ pid, startedAtUnixMs, atUnixMs, ended }) {
  const age = formatSeconds(Math.max(0, Math.round((atUnixMs - startedAtUnixMs) / 1000)))
  return `process ${pid}${ended ? ', which has ended' : ''}, counted since the attach ${age} ` +
    'after its start'
}

/**
 * Headline of a process that has ended. Running it longer is impossible, and a process that was
 * killed or crashed was not healthy.
 * @param {import('./watch-command').JudgedTarget} target
 * @param {boolean} died true if its process crashed or was killed
 * @returns {Pick<import('@memwatch/engine/verdicts/headline').Headline, 'state' | 'text'>}
 */
function sayPast ({ headline, verdicts }, died) {
  const { state, open } = headline
  if (state === 'undecided') {
    const checks = open.join(', ') || 'a check'
    return { state, text: `Undecided: it ended before ${checks} could be decided.` }
  }
  if (!died || (state !== 'ok' && state !== 'limited')) return headline
  const ruledOut = verdicts.filter(({ state, opportunity }) => state === 'ok' && !opportunity)
  return {
    state: 'undecided',
    text: `No memory problem explains its end: ${ruledOut.length} checks had found nothing until ` +
      'the last frame before it.'
  }
}

/** Builds the lines of a report, part by part. */
class ReportText {
  /** @type {Line[]} */
  lines = []
  #width
  #verbose
  #shorter

  /**
   * @param {number} width
   * @param {boolean} verbose
   * @param {number} [shorter] step of SHORTER; 0: a complete report
   */
  constructor (width, verbose, shorter = 0) {
    this.#width = width
    this.#verbose = verbose
    this.#shorter = shorter
  }

  /**
   * Adds lines about the command and the end of its processes.
   * @param {import('./watch-command').Report} report
   */
  addEnd ({ source, attached, command, durationSeconds, exit, ending, targets, deaths }) {
    const how = exit.signal
      ? `ended by ${exit.signal}`
      : exit.code === null ? 'end unknown' : `exit status ${exit.code}`
    const duration = formatSeconds(durationSeconds)
    const title = source?.title ?? (attached ? titleOf(attached) : how)
    // An exporter starts no command.
    const what = command.length > 0 ? command.join(' ') : 'recording of an exporter'
    this.#say(`memwatch: ${what} – ${duration}, ${title}`)
    for (const note of source?.notes ?? []) this.#say({ text: note, style: 'yellow' })
    if (source && targets.length === 0) this.#say('The recording contains no process.')
    if (ending) {
      this.#say({ text: ending.text, style: 'red' })
      if (ending.advice) this.#say(ending.advice)
      if (ending.holders) this.#addHolders(ending.holders)
    } else if (attached && targets.length === 0) {
      this.#say(
        'The agent sent nothing: the event loop of the process is blocked, or it has ended.'
      )
    } else if (!source && targets.length === 0) {
      const failed = (exit.code ?? 0) !== 0 && durationSeconds < EARLY_SECONDS
      this.#say('No Node.js process reported. ' + (failed
        ? `The command failed after ${duration}: its own output may say why.`
        : 'It may have ended within its first second, or NODE_OPTIONS did not reach it.'))
    }
    for (const { target, thread, pid, reason, text, advice, holders } of [...deaths].reverse()) {
      if (reason !== 'clean') {
        this.#say({ text: `${target} ${thread}, pid ${pid}: ${text}`, style: 'red' })
      }
      if (advice) this.#say(advice)
      // If a verdict has holders, they are printed with the verdict below.
      const isBelow = targets.some(other =>
        other.pid === pid && other.verdicts.some(({ holders }) => holders))
      if (holders && !isBelow) this.#addHolders(holders)
    }
  }

  /**
   * @param {import('@memwatch/engine/verdicts/holders').Holders} holders
   * @param {number} [indent]
   */
  #addHolders (holders, indent = 0) {
    this.#say(`Held, ${sourceText(holders)}`, indent)
    if (holders.refused) this.#say(`Not analysed: ${holders.refused}.`, indent + 2)
    for (const { text } of holders.piles.slice(0, MOST_PILES)) this.#say(`- ${text}`, indent + 2)
  }

  /**
   * @param {import('./watch-command').JudgedTarget} target
   * @param {object} about
   * @param {import('../sources').Told} [about.source]
   * @param {boolean} about.died true if its process crashed or was killed
   * @param {boolean} [about.isOver] true if the command ended by itself
   * @param {number} [about.endedAfterSeconds] age at which it ended, if known
   */
  addTarget (target, { source, died, isOver = false, endedAfterSeconds }) {
    const { thread, pid, node, headline, verdicts, memory } = target
    this.lines.push('')
    this.#say({ text: `${target.target} ${thread}, pid ${pid}, Node ${node}`, style: 'bold' })
    const found = verdicts
      .filter(({ state }) => state === 'confirmed' || state === 'suspected')
      .sort((a, b) =>
        Number(b.diagnosis === headline.diagnosis) - Number(a.diagnosis === headline.diagnosis)
      )
    const isPast = died || isOver || (source && endedAfterSeconds !== undefined)
    const { state, text } = isPast ? sayPast(target, died) : headline
    // The predicted times to a limit refer to the last frame, so they are marked for an ended
    // process.
    const past = found.some(({ secondsLeft }) => secondsLeft !== null)
      ? ' The times to a limit below were predicted before the end.'
      : ''
    if (endedAfterSeconds !== undefined) {
      this.#say(`It ended after ${formatSeconds(endedAfterSeconds)}.${past}`, 2)
    } else if (isOver && past) {
      this.#say(`The program ended by itself.${past}`, 2)
    }
    this.#say({ text, style: STYLES[state] }, 2)
    found.forEach((verdict, i) => {
      if (i === 0 || this.#verbose) this.#addVerdict(verdict, headline)
      else this.#addBrief(verdict)
    })
    if (memory && this.#shorter < SHORTER.parts) this.#addMemory(memory)
    this.#addOthers(verdicts.filter(({ diagnosis }) =>
      !source?.cannotTell.some(beyond => beyond.diagnosis === diagnosis)))
  }

  /**
   * Adds the checks without a finding: their number, or each one with its reason.
   * @param {JudgedVerdict[]} verdicts
   */
  #addOthers (verdicts) {
    const ruledOut = verdicts.filter(({ state }) => state === 'ok')
    const undecided = verdicts.filter(({ state }) => state === 'unknown')
    if (ruledOut.length + undecided.length === 0) return
    this.lines.push('')
    if (this.#verbose) {
      for (const { diagnosis, summary } of ruledOut) {
        this.#say(`ruled out  ${diagnosis}: ${summary}`, 2)
      }
      for (const { diagnosis, summary } of undecided) {
        this.#say(`undecided  ${diagnosis}: ${summary}`, 2)
      }
    } else {
      // The headline counts no opportunities either.
      const problems = ruledOut.filter(({ opportunity }) => !opportunity)
      const open = undecided.length > 0 ? `, ${undecided.length} undecided` : ''
      this.#say(`${problems.length} ruled out${open} (-v lists them)`, 2)
    }
  }

  /**
   * Adds one line for many short processes.
   * @param {import('./watch-command').Report['deaths']} ends
   * @param {number} seconds upper bound of their lives
   */
  addShort (ends, seconds) {
    const count = (/** @type {string} */ reason) =>
      ends.filter(end => end.reason === reason).length
    const how = [...new Set(ends.map(({ reason }) => reason))]
      .sort((a, b) => count(b) - count(a))
      .map(reason => `${count(reason)} ${reasons[reason].title}`)
    this.lines.push('')
    this.#say(`${ends.length} processes lived less than ${formatSeconds(seconds)}, too short for ` +
      `most checks, and had no finding: ${how.join(', ')} (-v lists them).`)
  }

  /** @param {import('../sources').Told} told */
  addSource ({ title, lacks, cannotTell, limited }) {
    this.lines.push('')
    for (const { diagnosis, text } of limited) {
      this.#say(diagnosis === null ? text : `${diagnosis}: ${text}`)
    }
    if (cannotTell.length === 0) return
    this.#say(
      `This source cannot evaluate ${cannotTell.map(({ diagnosis }) => diagnosis).join(', ')}. ` +
        `${title[0].toUpperCase()}${title.slice(1)} has no information on ${lacks}. Watch the ` +
        'app with an agent instead: memwatch run -- node server.js'
    )
  }

  /** @param {NonNullable<import('./watch-command').JudgedTarget['memory']>} memory */
  #addMemory ({ rssBytes, parts, unknown }) {
    this.lines.push('')
    const isShort = this.#shorter >= SHORTER.smallParts
    const least = this.#verbose ? LEAST_SHARE : isShort ? LEAST_LARGE_SHARE : LEAST_SHOWN_SHARE
    const shown = parts.filter(({ bytes }) => bytes >= least * rssBytes)
    this.#say(
      `${isShort ? 'Largest parts' : 'Parts'} of the RSS of ${formatBytes(rssBytes)}` +
        `${isShort ? ' (-v lists all)' : ''}`,
      2
    )
    const widest = Math.max(...shown.map(({ title }) => title.length))
    for (const { title, bytes } of shown) {
      const share = bytes / rssBytes
      const columns = [
        title.padEnd(widest), formatBytes(bytes).padStart(9), formatRatio(share).padStart(6)
      ]
      const bar = '█'.repeat(Math.round(BAR_LENGTH * share))
      this.lines.push(`    ${columns.join(' ')}  ${bar}`.trimEnd())
    }
    if (unknown && !isShort) this.#say(`Not known: ${unknown}.`, 4)
  }

  /** @param {JudgedVerdict} verdict */
  #addTitle ({ opportunity, state, confirmedAfterSeconds: after, title, diagnosis, severity }) {
    this.lines.push('')
    const since = after === null ? '' : ` after ${formatSeconds(after)}`
    const word = opportunity
      ? `OPPORTUNITY${state === 'confirmed' ? '' : ', not certain'}`
      : `${state.toUpperCase()}${since}`
    this.#say(
      {
        text: `${word}: ${title} (${diagnosis}, ${severity})`,
        style: opportunity ? 'cyan' : state === 'confirmed' ? 'red' : 'yellow'
      },
      2
    )
  }

  /**
   * Adds a further finding in short form, so that the report of a process fits on a screen.
   * @param {JudgedVerdict} verdict
   */
  #addBrief (verdict) {
    const { summary, suspects, state, opportunity, fix: [fix] } = verdict
    this.#addTitle(verdict)
    const isShort = this.#shorter >= SHORTER.others
    const site = suspects?.suspects.sites[0]
    if (!isShort) this.#say(summary, 2)
    if (!isShort && site) this.#say(`First suspect, by ${kindText(suspects.kind)}: ${site.text}`, 2)
    // A confirmed finding always shows its fix, because the headline may be about a suspicion.
    if (fix && (!isShort || (state === 'confirmed' && !opportunity))) {
      this.#say({ text: `Fix: ${fix.title} (-v shows it)`, style: 'bold' }, 2)
    }
  }

  /**
   * @param {JudgedVerdict} verdict
   * @param {import('@memwatch/engine/verdicts/headline').Headline} headline headline, which
   *   contains the summary of its verdict
   */
  #addVerdict (verdict, headline) {
    const { suspects, captureError, knownBugs, openHandles, mallocAddons, loadedAddons } = verdict
    this.#addTitle(verdict)
    if (verdict.diagnosis !== headline.diagnosis) this.#say(verdict.summary, 2)
    if (verdict.impact) this.#say(`Impact: ${verdict.impact}`, 2)
    const shown = verdict.evidence.slice(0, this.#mostEvidence())
    const all = verdict.evidence.length
    const left = shown.length === 0
      ? ': -v lists it'
      : all > shown.length ? ` (${shown.length} of ${all}, -v lists them)` : ''
    this.#say(`Evidence${left}`, 2)
    for (const { text } of shown) this.#say(`- ${text}`, 4)
    if (mallocAddons && mallocAddons.length > 0) {
      this.#say(`Addons with their own malloc: ${mallocAddons.join(', ')}`, 2)
    }
    if (loadedAddons) this.#say(loadedAddonsText(loadedAddons), 2)
    if (openHandles && openHandles.length > 0) {
      this.#say('Held open when it was found', 2)
      for (const { count, text } of openHandles.slice(0, MOST_SUSPECTS)) {
        this.#say(`- ${formatNumber(count)} ${text}`, 4)
      }
    }
    if (suspects) this.#addSuspects(suspects, headline)
    if (captureError) this.#say(`No profile could be made: ${captureError}`, 2)
    if (verdict.holders) this.#addHolders(verdict.holders, 2)
    this.#addKnownBugs(knownBugs, verdict.diagnosis === headline.diagnosis)
    verdict.fix.forEach((fix, i) => {
      if (i === 0) this.#addFix(fix, 'Fix')
      else if (this.#verbose) this.#addFix(fix, 'Or')
      else if (this.#shorter < SHORTER.others) this.#say(`Or: ${fix.title} (-v shows it)`, 2)
    })
    if (verdict.runbook) this.#say(`Runbook: ${runbookOf(verdict.runbook)}`, 2)
  }

  /** Number of lines of evidence. */
  #mostEvidence () {
    if (this.#verbose) return Infinity
    if (this.#shorter >= SHORTER.evidence) return 0
    if (this.#shorter >= SHORTER.others) return 1
    return this.#shorter >= SHORTER.details ? 2 : MOST_EVIDENCE
  }

  /**
   * @param {NonNullable<JudgedVerdict['suspects']>} suspects
   * @param {import('@memwatch/engine/verdicts/headline').Headline} headline
   */
  #addSuspects ({ kind, suspects: { sites, packages = [] } }, headline) {
    const shown = sites.slice(0, MOST_SUSPECTS)
    const isRepeated = shown.every(({ text }) => headline.text.includes(text))
    if (this.#shorter >= SHORTER.repeated && isRepeated) return
    this.#say(`Suspects, by ${kindText(kind)}`, 2)
    for (const { text } of shown) this.#say(`- ${text}`, 4)
    if (packages.length > 1) this.#say(`By package: ${packagesText(packages)}`, 4)
  }

  /**
   * Describes the likely bugs, and counts the others.
   * @param {JudgedVerdict['knownBugs']} bugs
   * @param {boolean} isHeadline true if the headline has already named the only likely bug
   */
  #addKnownBugs (bugs, isHeadline) {
    const isTold = isHeadline && bugs.length === 1 && bugs[0].likely
    const described = this.#verbose
      ? bugs
      : bugs.filter(({ likely }) => likely).slice(0, MOST_KNOWN_BUGS)
    for (const { text, workaround, thread } of described) {
      // The headline also names the condition of a known issue.
      const bug = isTold ? 'The known issue above.' : text
      const around = workaround === null ? '' : ` Workaround if it is the cause: ${workaround}.`
      this.#say(`${bug}${around} ${thread}`, 2)
    }
    const others = bugs.filter(bug => !described.includes(bug))
    if (others.length === 0) return
    const count = `${others.length}${described.length > 0 ? ' other' : ''}`
    const noun = others.length === 1 ? 'bug' : 'bugs'
    this.#say(
      `${count} known ${noun} of this version of Node.js or of a package may matter ` +
        '(-v describes them).',
      2
    )
  }

  /**
   * @param {JudgedVerdict['fix'][number]} fix
   * @param {string} word first word of the line
   */
  #addFix (fix, word) {
    this.#say({ text: `${word}: ${fix.title}`, style: 'bold' }, 2)
    const { code, dockerfile, kubernetes, env, flag, note } = fix.change
    if (code) this.#say(code, 6)
    const pasted = dockerfile ?? (env || (flag && !code) ? pasteLine(fix) : kubernetes)
    if (pasted) this.lines.push(...pasted.split('\n').map(line => `      ${line}`))
    if (flag && pasted !== flag) {
      this.lines.push(`      or on the command line: node ${shellWords(flag)}`)
    }
    if (note) this.#say(note, 6)
    for (const { name, from, to, unit } of fix.predicted) {
      const [before, after] = [from, to].map(value => formatValue(value, unit))
      this.#say(`Expect: ${name} from ${before} to about ${after}`, 6)
    }
    this.#say(`Note: ${fix.risk}`, 6)
  }

  /**
   * @param {Line} line
   * @param {number} [indent]
   */
  #say (line, indent) {
    this.lines.push(
      ...(typeof line === 'string'
        ? wrap(line, this.#width, indent)
        : wrap(line.text, this.#width, indent).map(text => ({ ...line, text })))
    )
  }
}

/**
 * @param {string} kind kind of a capture, such as `cpu_profile`
 * @returns {string} such as: a CPU profile
 */
const kindText = kind =>
  `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind.replaceAll('_', ' ').replace('cpu', 'CPU')}`

module.exports = { ReportText, SHORTER }

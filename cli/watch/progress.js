'use strict'

const { holderText, shortText } = require('@memwatch/engine/text/suspect-text')
const { formatBytes, formatRatio } = require('@memwatch/engine/text/format')
const { headlineOf } = require('@memwatch/engine/verdicts/headline')
const { stateSymbols } = require('@memwatch/engine/text/state-symbols')
const { signalsOf } = require('@memwatch/engine/signals/index')
const { sparkline } = require('../text/sparkline')

const BAR_WIDTH = 20
/** Window of the trend of RSS. */
const TREND_SECONDS = 60
const SPARK_WIDTH = 8
/**
 * Time after which the user learns why nothing has reported. An app reports once it has loaded, and
 * with a tenth of a core this takes some seconds.
 */
const SILENT_MS = 15_000
/** Least change of RSS that counts as a trend, as a share. */
const TREND_SHARE = 0.03

/**
 * Prints the progress of `memwatch run`: a permanent line for each finding that appears or
 * disappears and, on a terminal, one line that is redrawn.
 */
class Progress {
  #output
  #startedAt = Date.now()
  #label
  #seconds
  #verbose
  /** Present findings, by the names of target, thread and diagnosis. @type {Set<string>} */
  #found = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {NodeJS.Timeout | undefined} */
  #silenceTimer

  /**
   * @param {import('../program/output').Output} output
   * @param {object} [options]
   * @param {string} [options.label] beginning of each line
   * @param {number} [options.seconds] expected duration, for a bar
   * @param {boolean} [options.verbose] also print ruled out checks
   */
  constructor (output, { label = 'memwatch', seconds, verbose = false } = {}) {
    this.#output = output
    this.#label = label
    this.#seconds = seconds
    this.#verbose = verbose
  }

  /**
   * @param {import('@memwatch/exporter/exporter').Exporter} exporter
   * @param {{ host: string, port: number }} listen
   */
  start (exporter, listen) {
    this.say(`watching; live at http://${listen.host}:${listen.port}/`)
    exporter.on('verdict', (target, verdict) => {
      const { diagnosis, state, summary } = verdict
      const about = `${target.name} ${target.thread}: ${diagnosis}`
      const isFound = state === 'confirmed' || state === 'suspected'
      const wasFound = this.#found.delete(`${about} ${target.hello.pid}`)
      if (isFound) this.#found.add(`${about} ${target.hello.pid}`)
      const isWorthALine = isFound || wasFound || (this.#verbose && state === 'ok')
      if (isWorthALine) this.say(`${about} ${state}: ${summary}`)
    })
    exporter.on('captured', (/** @type {import('@memwatch/exporter/captures/captures').Capture} */ { kind, target, thread, suspects, retainers }) => {
      // Diagnostic reports and traces have no suspects.
      if (!suspects && !retainers) return
      const found = shortText(suspects) || holderText(retainers)
      this.say(`${target} ${thread}: ${kind}: ${found || 'no line stands out'}`)
    })
    exporter.on('analysis', ({ name, thread }, file) => {
      this.say(`${name} ${thread}: reads ${file}, which V8 wrote`)
    })
    exporter.on('holders', (_, death) => {
      const found = death && (death.holders.refused ?? holderText(death.holders))
      if (found) this.say(`${death.target} ${death.thread}: ${found}`)
    })
    this.#silenceTimer = setTimeout(() => {
      if (exporter.targets.some(({ frame }) => frame)) return
      this.say('no Node.js process has reported yet: an app reports when its event loop turns, ' +
        'or at its end if it computes without a pause')
    }, SILENT_MS)
    this.#silenceTimer.unref()
    if (!this.#output.isTerminal) return
    this.#timer = setInterval(() => this.#redraw(exporter), 1000)
    this.#timer.unref()
  }

  stop () {
    clearInterval(this.#timer)
    clearTimeout(this.#silenceTimer)
    this.#output.clear()
  }

  /** @param {string} text a permanent line */
  say (text) {
    this.#output.say(`${this.#label} ${this.#elapsed()}  ${text}`)
  }

  /** @param {import('@memwatch/exporter/exporter').Exporter} exporter */
  #redraw (exporter) {
    const target = exporter.targets.find(({ frame, thread }) => frame && thread === 'main')
    const text = target
      ? describe(target)
      : `${this.#label} no Node.js process has reported yet`
    this.#output.redraw(`${this.#bar()}${text} · ${this.#elapsed().trim()}`)
  }

  #bar () {
    if (this.#seconds === undefined) return ''
    const done = Math.min(
      BAR_WIDTH,
      Math.round((BAR_WIDTH * (Date.now() - this.#startedAt)) / 1000 / this.#seconds)
    )
    return `${'█'.repeat(done)}${'░'.repeat(BAR_WIDTH - done)} `
  }

  #elapsed () {
    return `${Math.round((Date.now() - this.#startedAt) / 1000)} s`.padStart(6)
  }
}

/**
 * Describes a target on one line, such as `shop ~ suspected js-heap-leak · RSS 304 MiB ↑ 140
 * MiB/min ▁▂▃▅▆ · GC 0.7 %`.
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function describe (target) {
  const { state, diagnosis } = headlineOf(target)
  const about = `${target.name} ${stateSymbols[state]} ${STATE_WORDS[state]}` +
    `${diagnosis === null ? '' : ` ${diagnosis}`}`
  const window = target.window()
  if (!window) return about
  const { gcPauseRatio } = signalsOf(window)
  const gc = gcPauseRatio === null ? '' : ` · GC ${formatRatio(gcPauseRatio)}`
  return `${about}${describeRss(window.points('rssBytes', TREND_SECONDS))}${gc}`
}

/** @type {Readonly<Record<import('@memwatch/engine/verdicts/headline').HeadlineState, string>>} */
const STATE_WORDS = Object.freeze({
  confirmed: 'confirmed',
  suspected: 'suspected',
  undecided: 'undecided',
  limited: 'nothing found',
  ok: 'healthy'
})

/** @param {import('@memwatch/engine/history/window').Points} points of RSS */
function describeRss ({ times, values }) {
  const newest = values.at(-1)
  if (newest === undefined) return ''
  const seconds = times[times.length - 1] - times[0]
  const change = newest - values[0]
  const isTrend = seconds > 0 && Math.abs(change) > TREND_SHARE * newest
  const trend = isTrend
    ? ` ${change > 0 ? '↑' : '↓'} ${formatBytes(60 * Math.abs(change) / seconds)}/min`
    : ''
  return ` · RSS ${formatBytes(newest)}${trend} ${sparkline(values, SPARK_WIDTH).trim()}`
}

module.exports = { Progress }

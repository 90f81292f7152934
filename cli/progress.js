'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')
const { holderText, shortText } = require('@memwatch/engine/text/suspect-text')
const { formatBytes, formatRatio } = require('@memwatch/engine/text/format')
const { signalsOf } = require('@memwatch/engine/signals/index')

const BAR_WIDTH = 20

/**
 * Progress of `memwatch run`: on a terminal one line that is redrawn, and in any case one line for
 * each finding that comes or goes.
 */
class Progress {
  #output
  #startedAt = Date.now()
  #label
  #seconds
  #verbose
  /** Findings that stand, as the names of target, thread and diagnosis. @type {Set<string>} */
  #found = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {import('./output').Output} output
   * @param {object} [options]
   * @param {string} [options.label] begins each line
   * @param {number} [options.seconds] expected duration, for a bar
   * @param {boolean} [options.verbose] also print what is ruled out
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
    if (!this.#output.isTerminal) return
    this.#timer = setInterval(() => this.#redraw(exporter), 1000)
    this.#timer.unref()
  }

  stop () {
    clearInterval(this.#timer)
    this.#output.clear()
  }

  /** @param {string} text a line that stays */
  say (text) {
    this.#output.say(`${this.#label} ${this.#elapsed()}  ${text}`)
  }

  /** @param {import('@memwatch/exporter/exporter').Exporter} exporter */
  #redraw (exporter) {
    const target = exporter.targets.find(({ frame, thread }) => frame && thread === 'main')
    const text = target ? describe(target) : 'no Node.js process has reported yet'
    this.#output.redraw(`${this.#label} ${this.#bar()}${this.#elapsed()}  ${text}`)
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

/** @param {import('@memwatch/engine/history/target').Target} target */
function describe (target) {
  const window = target.window()
  if (!window) return target.name
  const signals = signalsOf(window)
  const part = (/** @type {string} */ name, /** @type {number | null | undefined} */ value, /** @type {(value: number) => string} */ format) =>
    value === null || value === undefined ? '' : ` · ${name} ${format(value)}`
  const found = findCase(target).verdicts
    .filter(({ state }) => state === 'confirmed' || state === 'suspected')
    .map(({ diagnosis, state }) => ` · ${diagnosis} ${state}`).join('')
  return (
    `${target.name}${part('RSS', target.values.rssBytes, formatBytes)}${part('live heap', signals.liveHeapBytes, formatBytes)}` +
    `${part('GC', signals.gcPauseRatio, formatRatio)}${part('loop', signals.eventLoopUtilizationRatio, formatRatio)}${found}`
  )
}

module.exports = { Progress }

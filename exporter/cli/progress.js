'use strict'

const { shortText } = require('../captures/suspect-text')
const { formatBytes, formatRatio } = require('../text/format')
const { signalsOf } = require('../signals')

const CLEAR_LINE = '\r\x1b[2K'

/**
 * What `memwatch run` says while the command runs: on a terminal one line that is redrawn, and in any case one line for
 * each verdict that changes.
 */
class Progress {
  #stream
  #startedAt = Date.now()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {NodeJS.WriteStream} stream */
  constructor (stream) {
    this.#stream = stream
  }

  /** @param {import('../exporter').Exporter} exporter @param {{ host: string, port: number }} listen */
  start (exporter, listen) {
    this.#line(`watching; live at http://${listen.host}:${listen.port}/`)
    exporter.on('verdict', (target, verdict) => {
      if (verdict.state === 'unknown') return
      this.#line(`${target.name} ${target.thread}: ${verdict.diagnosis} ${verdict.state}: ${verdict.summary}`)
    })
    exporter.on('captured', (/** @type {import('../captures/captures').Capture} */ { kind, target, thread, suspects }) => {
      this.#line(`${target} ${thread}: ${kind}: ${shortText(suspects) || 'nothing stands out'}`)
    })
    if (!this.#stream.isTTY) return
    this.#timer = setInterval(() => this.#redraw(exporter), 1000)
    this.#timer.unref()
  }

  stop () {
    clearInterval(this.#timer)
    if (this.#stream.isTTY) this.#stream.write(CLEAR_LINE)
  }

  /** @param {string} text */
  #line (text) {
    this.#stream.write(`${this.#stream.isTTY ? CLEAR_LINE : ''}memwatch ${this.#elapsed()}  ${text}\n`)
  }

  /** @param {import('../exporter').Exporter} exporter */
  #redraw (exporter) {
    const target = exporter.targets.find(({ frame, thread }) => frame && thread === 'main')
    const text = target ? describe(target) : 'no Node.js process has reported yet'
    this.#stream.write(`${CLEAR_LINE}memwatch ${this.#elapsed()}  ${text}`.slice(0, (this.#stream.columns || 100) + CLEAR_LINE.length - 1))
  }

  #elapsed () {
    return `${Math.round((Date.now() - this.#startedAt) / 1000)} s`.padStart(6)
  }
}

/** @param {import('../series/target').Target} target */
function describe (target) {
  const window = target.window()
  if (!window) return target.name
  const signals = signalsOf(window)
  const part = (/** @type {string} */ name, /** @type {number | null | undefined} */ value, /** @type {(value: number) => string} */ format) =>
    value === null || value === undefined ? '' : ` · ${name} ${format(value)}`
  const found = target.verdicts.filter(({ state }) => state === 'confirmed' || state === 'suspected')
    .map(({ diagnosis, state }) => ` · ${diagnosis} ${state}`).join('')
  return `${target.name}${part('RSS', target.values.rssBytes, formatBytes)}${part('live heap', signals.liveHeapBytes, formatBytes)}` +
    `${part('GC', signals.gcPauseRatio, formatRatio)}${part('loop', signals.eventLoopUtilizationRatio, formatRatio)}${found}`
}

module.exports = { Progress }

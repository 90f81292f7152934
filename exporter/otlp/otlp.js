'use strict'

const { Outcomes } = require('./outcomes')
const { EventsExport } = require('./events-export')
const { MetricsExport } = require('./metrics-export')
const { readSettings } = require('./settings')
const { surroundings } = require('./surroundings')

/** Time that a stopping exporter waits for unsent data. */
const LAST_MS = 3000

/**
 * Sends the data of `--otlp`: metrics of every target and of the exporter at intervals, by default
 * once a minute; verdicts, deaths and ended follow-ups when they occur. It sends OTLP over HTTP, as
 * protobuf. An unreachable, slow or faulty receiver only causes losses, which are counted.
 */
class Otlp {
  /** Counts by signal and outcome, such as `metrics delivered`. @type {Map<string, number>} */
  counts = new Map()
  #metrics
  #events
  #everyMs
  #failed
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options
   * @param {string} options.to an address, or `env`
   * @param {{ targets: () => import('@memwatch/engine/history/target').Target[], state: () =>
   *   import('../catalog/exporter-metrics').ExporterState }} options.source
   * @param {{ warn: (text: string) => void, info: (text: string) => void }} options.log
   */
  constructor ({ to, source, log }) {
    const { metrics, logs, everyMs, deltas, problems } = readSettings(to)
    for (const problem of problems) log.warn(`--otlp: ${problem}`)
    this.#everyMs = everyMs
    this.#failed = (/** @type {Error} */ error) => log.warn('--otlp: cannot collect metrics: ' +
      `${error.stack}`)
    const around = surroundings()
    if (metrics) {
      this.#metrics = new MetricsExport({
        http: metrics,
        deltas,
        source,
        around,
        outcomes: new Outcomes('metrics', this.counts, log)
      })
    }
    if (logs) {
      this.#events = new EventsExport({
        http: logs,
        around,
        outcomes: new Outcomes('logs', this.counts, log),
        retryMs: everyMs
      })
    }
    const hosts = new Set([metrics, logs].flatMap(http => http ? [new URL(http.url).host] : []))
    log.info(`--otlp: sending to ${[...hosts].join(' and ') || 'no address'}`)
  }

  start () {
    this.#timer = setInterval(() => this.exportMetrics(), this.#everyMs).unref()
  }

  /** Exports metrics now. */
  async exportMetrics () {
    await this.#metrics?.export().catch(this.#failed)
  }

  /** Sends the waiting events now. */
  async exportEvents () {
    await this.#events?.export()
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  framed (target) {
    this.#metrics?.framed(target)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict
   */
  changed (target, verdict) {
    this.#events?.changed(target, verdict)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('../deaths/deaths').Death} death
   */
  died (target, death) {
    this.#events?.died(target, death)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/follow-up').FollowUp} followUp
   */
  followed (target, followUp) {
    this.#events?.followed(target, followUp)
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  ended (target) {
    this.#metrics?.ended(target)
  }

  /** Stops. It tries once to send unsent data. */
  async stop () {
    clearInterval(this.#timer)
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    await Promise.race([
      Promise.all([this.#metrics?.finish().catch(this.#failed), this.#events?.export()]),
      new Promise(resolve => { timer = setTimeout(resolve, LAST_MS) })
    ])
    clearTimeout(timer)
    this.#metrics?.stop()
    this.#events?.stop()
  }
}

module.exports = { Otlp }

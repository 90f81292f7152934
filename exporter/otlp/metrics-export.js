'use strict'

const { ProtobufMetricsSerializer } = require('@opentelemetry/otlp-transformer')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { otelMetrics } = require('../catalog/otel-metrics')
const { targetMetrics } = require('../catalog/target-metrics')
const { steadyUnixMs } = require('../clock')
const { signalsOf } = require('../signals')
const { Turns } = require('../turns')
const { Deltas } = require('./deltas')
const { otelRows, metricData } = require('./metric-data')
const { ownResource, resourceOf } = require('./resource')
const { scope } = require('./scope')
const { Sender } = require('./sender')

/** A request is about as large at most; receivers take 4 MiB and more. */
const MOST_BYTES = 2 ** 20
/** Last readings of targets that ended, kept until they are sent: those of some minutes of short jobs. */
const MOST_ENDED = 200

/**
 * What is known of one target at one moment.
 * @typedef {object} Reading
 * @property {import('@opentelemetry/resources').Resource} resource
 * @property {import('@opentelemetry/sdk-metrics').MetricData[]} metrics cumulative
 * @property {number} atUnixMs
 * @property {Deltas} [deltas] where differences are wanted
 * @property {() => void} taken by the receiver
 */

/** Sends what is known of every target, one ResourceMetrics each, and of the exporter itself. */
class MetricsExport {
  #rows = otelRows([...targetMetrics, ...compatMetrics, ...otelMetrics])
  #ownRows = otelRows(exporterMetrics)
  #startUnknown = new Set([...this.#rows, ...this.#ownRows].filter(({ form }) => form.startUnknown).map(({ form }) => form.name))
  #beganUnixMs
  #sender
  #source
  #deltas
  #outcomes
  #around
  #ownResource
  #now
  /** @type {Promise<void> | undefined} */
  #underWay
  /** @type {Set<Reading>} */
  #ended = new Set()
  /** Sequence of the frame that was last taken. @type {WeakMap<import('../series/target').Target, number>} */
  #told = new WeakMap()
  /** @type {WeakMap<object, Deltas>} by target, or this */
  #deltasOf = new WeakMap()

  /**
   * @param {object} options
   * @param {import('./settings').HttpOptions} options.http
   * @param {{ sums: boolean, histograms: boolean }} options.deltas what travels as differences
   * @param {{ targets: () => import('../series/target').Target[], state: () => import('../catalog/exporter-metrics').ExporterState }} options.source
   * @param {ReturnType<typeof import('./surroundings').surroundings>} options.around
   * @param {import('./outcomes').Outcomes} options.outcomes
   * @param {() => number} [options.now] Unix time in ms, of the wall clock: receivers judge by it
   */
  constructor ({ http, deltas, source, around, outcomes, now = Date.now }) {
    this.#sender = new Sender({ http, readAnswer: ProtobufMetricsSerializer.deserializeResponse })
    this.#deltas = deltas
    this.#source = source
    this.#around = around
    this.#ownResource = ownResource(around)
    this.#outcomes = outcomes
    this.#now = now
    this.#beganUnixMs = now()
  }

  /** What counters stood at when a target was first seen. @param {import('../series/target').Target} target */
  framed (target) {
    if (!this.#wantsDeltas || this.#deltasOf.has(target)) return
    const { deltas, metrics, atUnixMs } = this.#reading(target)
    // Those of one that started under our eyes count from 0.
    if (target.hello.startedAtUnixMs < this.#beganUnixMs) deltas?.taken(metrics, atUnixMs)
  }

  /** Its last frame may not have been told of. @param {import('../series/target').Target} target */
  ended (target) {
    if (!target.frame || this.#told.get(target) === target.frame.sequence) return
    this.#ended.add(this.#reading(target))
    if (this.#ended.size <= MOST_ENDED) return
    this.#ended.delete(/** @type {Reading} */ (this.#ended.values().next().value))
    this.#outcomes.add('dropped', 1)
  }

  /** One round. While the one before is under way there is none. */
  async export () {
    const targets = this.#source.targets().filter(({ frame }) => frame)
    if (this.#underWay) return this.#outcomes.add('dropped', this.#ended.size + targets.length + 1)
    this.#underWay = this.#round(targets).finally(() => { this.#underWay = undefined })
    return this.#underWay
  }

  /** What is under way, and a last round. */
  async finish () {
    await this.#underWay
    await this.export()
  }

  /** @param {import('../series/target').Target[]} targets */
  async #round (targets) {
    let left = this.#ended.size + targets.length + 1
    try {
      for await (const { parts, readings } of this.#requests(targets)) {
        const sent = await this.#sender.send(parts)
        left -= readings.length
        this.#outcomes.sent(sent, readings.length)
        const failed = sent.outcome === 'failed'
        for (const reading of readings) {
          if (!failed) reading.taken()
          if (!failed || sent.final) this.#ended.delete(reading)
        }
        // Who does not take this does not take the rest.
        if (failed) break
      }
    } finally {
      this.#outcomes.add('dropped', left)
    }
  }

  stop () {
    this.#sender.stop()
  }

  /**
   * Readings in requests, each made when the one before is sent; others have their turns meanwhile.
   * @param {import('../series/target').Target[]} targets
   */
  async * #requests (targets) {
    const turns = new Turns()
    /** @type {Uint8Array[]} */
    let parts = []
    /** @type {Reading[]} */
    let readings = []
    let bytes = 0
    for (const one of [...this.#ended, ...targets, undefined]) {
      if (turns.over) await turns.next()
      const reading = one === undefined ? this.#ownReading() : 'metrics' in one ? one : this.#reading(one)
      const part = this.#serialized(reading)
      parts.push(part)
      readings.push(reading)
      bytes += part.length
      if (bytes < MOST_BYTES && one !== undefined) continue
      yield { parts, readings }
      parts = []
      readings = []
      bytes = 0
    }
  }

  /** @param {Reading} reading */
  #serialized ({ resource, metrics, atUnixMs, deltas }) {
    const wanted = deltas ? deltas.since(metrics, atUnixMs, this.#startUnknown) : metrics
    return /** @type {Uint8Array} */ (ProtobufMetricsSerializer.serializeRequest({ resource, scopeMetrics: [{ scope, metrics: wanted }] }))
  }

  /** @param {import('../series/target').Target} target with a frame @returns {Reading} */
  #reading (target) {
    const frame = /** @type {import('memwatch/frame').Frame} */ (target.frame)
    const atUnixMs = this.#now()
    const window = /** @type {import('../series/window').Window} */ (target.window())
    const signals = signalsOf(window)
    /** @type {import('../catalog/metric').Context} */
    const context = { nowUnixMs: steadyUnixMs(), window, signal: name => signals[name] }
    const metrics = metricData(this.#rows, row => row.histogram ? row.histogram.rows(target) : row.read(target, context), {
      startUnixMs: target.hello.startedAtUnixMs,
      seenUnixMs: frame.atUnixMs - 1000 * target.watchedSeconds,
      nowUnixMs: atUnixMs
    })
    const deltas = this.#deltasFor(target, target.hello.startedAtUnixMs >= this.#beganUnixMs)
    return {
      resource: resourceOf(target, this.#around),
      metrics,
      atUnixMs,
      deltas,
      taken: () => {
        this.#told.set(target, frame.sequence)
        deltas?.taken(metrics, atUnixMs)
      }
    }
  }

  /** @returns {Reading} */
  #ownReading () {
    const atUnixMs = this.#now()
    const state = this.#source.state()
    const metrics = metricData(this.#ownRows, row => row.read(state), { startUnixMs: performance.timeOrigin, seenUnixMs: performance.timeOrigin, nowUnixMs: atUnixMs })
    const deltas = this.#deltasFor(this, true)
    return { resource: this.#ownResource, metrics, atUnixMs, deltas, taken: () => deltas?.taken(metrics, atUnixMs) }
  }

  get #wantsDeltas () {
    return this.#deltas.sums || this.#deltas.histograms
  }

  /** @param {object} whose @param {boolean} fromStart */
  #deltasFor (whose, fromStart) {
    if (!this.#wantsDeltas) return undefined
    let deltas = this.#deltasOf.get(whose)
    if (!deltas) this.#deltasOf.set(whose, deltas = new Deltas(this.#deltas, fromStart))
    return deltas
  }
}

module.exports = { MetricsExport }

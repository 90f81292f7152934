'use strict'

const { ProtobufMetricsSerializer } = require('@memwatch/otlp')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { otelMetrics } = require('../catalog/otel-metrics')
const { targetMetrics } = require('../catalog/target-metrics')
const { steadyUnixMs } = require('../clock')
const { figures, signalsOf } = require('@memwatch/engine/signals/index')
const { Deltas } = require('./deltas')
const { otelRows, metricData } = require('./metric-data')
const { ownResource, resourceOf } = require('./resource')
const { scope } = require('./scope')

/** @typedef {import('@memwatch/engine/history/target').Target} Target */

/**
 * Values of one target, or of the exporter, at one moment. A reading does not refer to its target,
 * because ended targets take much memory.
 * @typedef {object} Reading
 * @property {import('@opentelemetry/resources').Resource} resource
 * @property {import('@opentelemetry/sdk-metrics').MetricData[]} metrics cumulative metrics
 * @property {number} atUnixMs
 * @property {Deltas} [deltas] values that the receiver has accepted; only if deltas are sent
 */

const rows = otelRows([...targetMetrics, ...compatMetrics, ...otelMetrics])
const ownRows = otelRows(exporterMetrics)
const startUnknown = new Set(
  [...rows, ...ownRows].filter(({ form }) => form.startUnknown).map(({ form }) => form.name)
)

/** Reads targets, and stores accepted values for deltas. */
class Readings {
  #wanted
  #around
  #ownResource
  #now
  #beganUnixMs
  /** @type {WeakMap<object, Deltas>} deltas by target; the exporter's own under `this` */
  #deltas = new WeakMap()

  /**
   * @param {object} options
   * @param {{ sums: boolean, histograms: boolean }} options.deltas metrics that are sent as
   *   differences
   * @param {ReturnType<typeof import('./surroundings').surroundings>} options.around
   * @param {() => number} options.now Unix time in ms by the wall clock, which receivers expect
   */
  constructor ({ deltas, around, now }) {
    this.#wanted = deltas.sums || deltas.histograms ? deltas : undefined
    this.#around = around
    this.#ownResource = ownResource(around)
    this.#now = now
    this.#beganUnixMs = now()
  }

  /** Records the counters of a target when it is first seen. @param {Target} target with a frame */
  begin (target) {
    if (!this.#wanted || this.#deltas.has(target)) return
    const reading = this.of(target)
    // Counters of a target that started after this exporter begin at 0.
    if (target.hello.startedAtUnixMs < this.#beganUnixMs) this.taken(reading)
  }

  /**
   * @param {Target} target with a frame
   * @returns {Reading}
   */
  of (target) {
    const frame = /** @type {import('@memwatch/agent/protocol/frame').Frame} */ (target.frame)
    const atUnixMs = this.#now()
    const window = /** @type {import('@memwatch/engine/history/window').Window} */ (target.window())
    const signals = signalsOf(window)
    /** @type {import('../catalog/metric').Context} */
    const context = {
      nowUnixMs: steadyUnixMs(), window, signal: name => figures[name].read(signals)
    }
    const metrics = metricData(rows, row => row.read(target, context), {
      startUnixMs: target.hello.startedAtUnixMs,
      seenUnixMs: frame.atUnixMs - 1000 * target.watchedSeconds,
      nowUnixMs: atUnixMs
    })
    return {
      resource: resourceOf(target, this.#around),
      metrics,
      atUnixMs,
      deltas: this.#deltasOf(target, target.hello.startedAtUnixMs >= this.#beganUnixMs)
    }
  }

  /**
   * @param {import('../catalog/exporter-metrics').ExporterState} state
   * @returns {Reading} reading of the exporter itself
   */
  own (state) {
    const atUnixMs = this.#now()
    const metrics = metricData(ownRows, row => row.read(state), {
      startUnixMs: performance.timeOrigin,
      seenUnixMs: performance.timeOrigin,
      nowUnixMs: atUnixMs
    })
    return { resource: this.#ownResource, metrics, atUnixMs, deltas: this.#deltasOf(this, true) }
  }

  /** Serialises a request with this reading only. @param {Reading} reading */
  serialized ({ resource, metrics, atUnixMs, deltas }) {
    const sent = deltas ? deltas.since(metrics, atUnixMs, startUnknown) : metrics
    return /** @type {Uint8Array} */ (ProtobufMetricsSerializer.serializeRequest({ resource, scopeMetrics: [{ scope, metrics: sent }] }))
  }

  /** Marks a reading as accepted by the receiver. @param {Reading} reading */
  taken ({ metrics, atUnixMs, deltas }) {
    deltas?.taken(metrics, atUnixMs)
  }

  /**
   * @param {object} whose
   * @param {boolean} fromStart
   */
  #deltasOf (whose, fromStart) {
    if (!this.#wanted) return undefined
    let deltas = this.#deltas.get(whose)
    if (!deltas) this.#deltas.set(whose, deltas = new Deltas(this.#wanted, fromStart))
    return deltas
  }
}

module.exports = { Readings }

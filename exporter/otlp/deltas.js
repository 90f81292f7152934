'use strict'

const { AggregationTemporality, DataPointType } = require('@memwatch/otlp')
const { added, hrTime } = require('./metric-data')

/** @typedef {import('@opentelemetry/sdk-metrics').MetricData} MetricData */

/**
 * @param {MetricData} metric
 * @param {{ attributes: object }} point
 */
const keyOf = ({ descriptor }, { attributes }) => descriptor.name + JSON.stringify(attributes)

/**
 * Values of one target that a receiver of deltas already has. They advance when an export is
 * accepted, so that a lost export is included in the next one.
 */
class Deltas {
  #which
  #fromStart
  /**
   * Counters and histograms at the last accepted export; undefined before the first one.
   * @type {Map<string, any> | undefined}
   */
  #taken
  #takenUnixMs = 0

  /**
   * @param {{ sums: boolean, histograms: boolean }} which kinds of metrics that are sent as
   *   differences
   * @param {boolean} fromStart true if the earlier counts were never sent; otherwise another
   *   exporter may have sent them
   */
  constructor (which, fromStart) {
    this.#which = which
    this.#fromStart = fromStart
  }

  /** @param {MetricData} metric */
  #concerns (metric) {
    return metric.dataPointType === DataPointType.HISTOGRAM
      ? this.#which.histograms
      : metric.dataPointType === DataPointType.SUM && metric.isMonotonic && this.#which.sums
  }

  /**
   * @param {MetricData[]} metrics cumulative metrics
   * @param {number} atUnixMs time at which they were read
   * @param {ReadonlySet<string>} startUnknown names of counters that may have started before the
   *   target
   * @returns {MetricData[]} differences since the last export
   */
  since (metrics, atUnixMs, startUnknown) {
    // The clock may have been set back since.
    const startTime = hrTime(Math.min(this.#takenUnixMs, atUnixMs))
    return metrics.map(metric => {
      if (!this.#concerns(metric)) return metric
      const dataPoints = metric.dataPoints.flatMap((/** @type {any} */ point) => {
        const before = this.#taken?.get(keyOf(metric, point))
        if (before === undefined) {
          const unknown =
            startUnknown.has(metric.descriptor.name) || !(this.#taken || this.#fromStart)
          return unknown ? [] : [this.#taken ? { ...point, startTime } : point]
        }
        const value = added(point.value, before, -1)
        // A counter that fell has restarted. Its growth before the restart is unknown.
        return (typeof value === 'number' ? value : value.count) < 0
          ? []
          : [{ ...point, startTime, value }]
      })
      return /** @type {MetricData} */ ({ ...metric, aggregationTemporality: AggregationTemporality.DELTA, dataPoints })
    }).filter(({ dataPoints }) => dataPoints.length > 0)
  }

  /**
   * @param {MetricData[]} metrics accepted, cumulative metrics
   * @param {number} atUnixMs time at which they were read
   */
  taken (metrics, atUnixMs) {
    this.#takenUnixMs = atUnixMs
    this.#taken = new Map(metrics.filter(metric => this.#concerns(metric)).flatMap(metric =>
      metric.dataPoints.map(point => /** @type {const} */ ([keyOf(metric, point), point.value]))))
  }
}

module.exports = { Deltas }

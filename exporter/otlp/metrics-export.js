'use strict'

const { ProtobufMetricsSerializer } = require('@memwatch/otlp')
const { Turns } = require('../turns')
const { Readings } = require('./readings')
const { Sender } = require('./sender')

/** Approximate size limit of a request; receivers accept at least 4 MiB. */
const MOST_BYTES = 2 ** 20
/**
 * Upper bound of last readings of ended targets that wait to be sent: enough for some minutes of
 * short jobs.
 */
const MOST_ENDED = 200

/**
 * @typedef {import('@memwatch/engine/history/target').Target} Target
 * @typedef {import('./readings').Reading} Reading
 * @typedef {{ reading: Reading, target?: Target, sequence?: number }} Told target: target that is
 *   still watched, and the sequence of the frame from which it was read
 */

/** Sends the metrics of every target, one ResourceMetrics each, and of the exporter itself. */
class MetricsExport {
  #sender
  #source
  #readings
  #outcomes
  /** @type {Promise<void> | undefined} */
  #underWay
  /** @type {Set<Reading>} */
  #ended = new Set()
  /**
   * Sequence of the last frame that the receiver accepted.
   * @type {WeakMap<Target, number | undefined>}
   */
  #told = new WeakMap()

  /**
   * @param {object} options
   * @param {import('./settings').HttpOptions} options.http
   * @param {{ sums: boolean, histograms: boolean }} options.deltas metrics sent as deltas
   * @param {{ targets: () => Target[], state: () =>
   *   import('../catalog/exporter-metrics').ExporterState }} options.source
   * @param {ReturnType<typeof import('./surroundings').surroundings>} options.around
   * @param {import('./outcomes').Outcomes} options.outcomes
   * @param {() => number} [options.now] Unix time in ms, of the wall clock
   */
  constructor ({ http, deltas, source, around, outcomes, now = Date.now }) {
    this.#sender = new Sender({ http, readAnswer: ProtobufMetricsSerializer.deserializeResponse })
    this.#source = source
    this.#readings = new Readings({ deltas, around, now })
    this.#outcomes = outcomes
  }

  /** @param {Target} target */
  framed (target) {
    this.#readings.begin(target)
  }

  /**
   * Reads an ended target once more, because its last frame may not have been exported yet.
   * @param {Target} target
   */
  ended (target) {
    if (!target.frame || this.#told.get(target) === target.frame.sequence) return
    this.#ended.add(this.#readings.of(target))
    if (this.#ended.size <= MOST_ENDED) return
    this.#ended.delete(/** @type {Reading} */ (this.#ended.values().next().value))
    this.#outcomes.add('dropped', 1)
  }

  /**
   * Exports the readings of all targets. While an export is running, further calls do nothing but
   * count dropped readings.
   */
  async export () {
    const targets = this.#source.targets().filter(({ frame }) => frame)
    if (this.#underWay) return this.#outcomes.add('dropped', this.#ended.size + targets.length + 1)
    this.#underWay = this.#round(targets).finally(() => { this.#underWay = undefined })
    return this.#underWay
  }

  /** Finishes the current export, then exports once more. */
  async finish () {
    await this.#underWay
    await this.export()
  }

  stop () {
    this.#sender.stop()
  }

  /** @param {Target[]} targets */
  async #round (targets) {
    let left = this.#ended.size + targets.length + 1
    try {
      for await (const { parts, told } of this.#requests(targets)) {
        const sent = await this.#sender.send(parts)
        left -= told.length
        this.#outcomes.sent(sent, told.length)
        const failed = sent.outcome === 'failed'
        for (const { reading, target, sequence } of told) {
          if (!failed) this.#readings.taken(reading)
          if (!failed && target) this.#told.set(target, sequence)
          if (!failed || sent.final) this.#ended.delete(reading)
        }
        // A receiver that refuses this request would refuse the remaining ones.
        if (failed) break
      }
    } finally {
      this.#outcomes.add('dropped', left)
    }
  }

  /**
   * Groups readings into requests, each built after the answer to the previous one, so that other
   * work runs in between.
   * @param {Target[]} targets
   */
  async * #requests (targets) {
    const turns = new Turns()
    /** @type {(() => Told)[]} */
    const toTell = [
      ...[...this.#ended].map(reading => () => ({ reading })),
      ...targets.map(target => () => ({
        reading: this.#readings.of(target),
        target,
        sequence: target.frame?.sequence
      })),
      () => ({ reading: this.#readings.own(this.#source.state()) })
    ]
    /** @type {{ parts: Uint8Array[], told: Told[] }} */
    let request = { parts: [], told: [] }
    let bytes = 0
    for (const [i, tell] of toTell.entries()) {
      if (turns.over) await turns.next()
      const told = tell()
      const part = this.#readings.serialized(told.reading)
      request.parts.push(part)
      request.told.push(told)
      bytes += part.length
      if (bytes < MOST_BYTES && i < toTell.length - 1) continue
      yield request
      request = { parts: [], told: [] }
      bytes = 0
    }
  }
}

module.exports = { MetricsExport }

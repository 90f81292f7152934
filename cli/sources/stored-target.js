'use strict'

const { PAUSE_ROW } = require('@memwatch/agent/protocol/frame')
const { oldUsedBytes, semiSpaceCapacity } = require('@memwatch/engine/v8/heap-spaces')
const { heapBounds, heapSizeLimit, V8 } = require('./heap-bounds')
const { valuesOf, whoOf } = require('./stored-metrics')

/** Upper bound of an interval; the same bound applies to an agent's hello. */
const MOST_INTERVAL_SECONDS = 600

/**
 * One target stored by Prometheus. Its samples become frames, one for each scrape; each start of
 * the process begins a session.
 */
class StoredTarget {
  #lives
  #labels
  #given
  #own
  #stepSeconds
  #startUnixSeconds = NaN
  #lastUnixSeconds = -Infinity
  #heldBytes = 0
  #majors = NaN
  #capacityBytes = 0
  /** @type {import('./lives').Life | undefined} */
  #life
  intervalSeconds = 0

  /**
   * @param {import('./lives').Lives} lives
   * @param {Record<string, string>} labels
   * @param {import('./define-source').Given} given
   * @param {{ own: boolean, stepSeconds: number }} options own: true for memwatch's metrics
   */
  constructor (lives, labels, given, { own, stepSeconds }) {
    this.#lives = lives
    this.#labels = labels
    this.#given = given
    this.#own = own
    this.#stepSeconds = stepSeconds
  }

  /**
   * @param {import('./prometheus-api').Series[]} series series of a time range that follows the
   *   previous one
   */
  take (series) {
    /**
     * Samples by the moment of their scrape.
     * @type {Map<number, import('./stored-metrics').Sample[]>}
     */
    const scrapes = new Map()
    for (const { metric, values } of series) {
      for (const [time, text] of values) {
        const value = Number(text)
        if (!Number.isFinite(value) || value < 0) continue
        const scrape = scrapes.get(time)
        if (scrape) scrape.push({ metric, value })
        else scrapes.set(time, [{ metric, value }])
      }
    }
    const times = [...scrapes.keys()].sort((a, b) => a - b)
    this.intervalSeconds ||=
      times.length > 1 ? (times[times.length - 1] - times[0]) / (times.length - 1) : 0
    for (const time of times) this.#scrape(time, /** @type {import('./stored-metrics').Sample[]} */ (scrapes.get(time)), series)
  }

  close () {
    this.#life?.close()
    this.#life = undefined
  }

  /**
   * @param {number} time Unix seconds
   * @param {import('./stored-metrics').Sample[]} samples
   * @param {import('./prometheus-api').Series[]} series
   */
  #scrape (time, samples, series) {
    if (time <= this.#lastUnixSeconds || time - this.#lastUnixSeconds < this.#stepSeconds) return
    const {
      values,
      startUnixSeconds = this.#startUnixSeconds || time,
      semiSpaceMaxBytes
    } = valuesOf(samples)
    if (values.heapUsedBytes === undefined) return
    this.#lastUnixSeconds = time
    // memwatch exports the exact start time, and prom-client a rounded one, so a difference of a
    // second is not a restart.
    if (!(Math.abs(startUnixSeconds - this.#startUnixSeconds) < 2)) {
      this.#open(startUnixSeconds, series)
    }
    if (semiSpaceMaxBytes !== undefined && this.#life) {
      this.#life.target.hello.semiSpaceMaxBytes = semiSpaceMaxBytes
    }
    this.#complete(values)
    this.#life?.frame(Math.max(0, time - this.#startUnixSeconds), values)
  }

  /**
   * @param {number} startUnixSeconds
   * @param {import('./prometheus-api').Series[]} series
   */
  #open (startUnixSeconds, series) {
    this.close()
    this.#startUnixSeconds = startUnixSeconds
    this.#heldBytes = this.#capacityBytes = 0
    this.#majors = NaN
    const { thread = 'main', target, ...process } = this.#labels
    const who = whoOf(series.map(({ metric }) => metric))
    const v8 = V8[parseInt(this.#given.nodeVersion ?? who.node ?? '')]
    this.#life = this.#lives.open(
      {
        name: target ?? process.pod ?? process.instance ?? process.job ?? 'app',
        host: JSON.stringify({ ...process, target }),
        threadId: thread === 'main' ? 0 : Number(thread.replace(/\D/g, '')) || 1,
        startedAtUnixMs: startUnixSeconds * 1000,
        intervalSeconds: Math.min(MOST_INTERVAL_SECONDS, Math.max(1, this.intervalSeconds)),
        ...(v8 && { v8: v8.join('.') }),
        ...(this.#given.nodeVersion !== undefined && { node: this.#given.nodeVersion }),
        ...who,
        ...(this.#given.containerLimitBytes !== undefined && {
          constrainedBytes: this.#given.containerLimitBytes
        })
      },
      this.#own ? undefined : () => this.#bounds()
    )
  }

  /**
   * Completes values that follow from others.
   * @param {import('@memwatch/agent/protocol/frame').Values} values
   */
  #complete (values) {
    const { gc, spaces } = values
    const majors = gc && countMajors(gc)
    if (
      majors !== undefined &&
      (this.#own ? values.liveHeapBytes !== undefined : majors > this.#majors && spaces)
    ) {
      values.liveHeapMajors = majors
      // prom-client exports no live heap. The used heap at the scrape after a major GC replaces it,
      // and is slightly larger.
      if (spaces) values.liveHeapBytes ??= oldUsedBytes(spaces)
    }
    this.#majors = majors ?? NaN
    if (this.#given.containerLimitBytes !== undefined) {
      values.containerLimitBytes ??= this.#given.containerLimitBytes
    }
    if (this.#own) return
    this.#heldBytes = Math.max(this.#heldBytes, values.heapTotalBytes ?? 0)
    const capacity = semiSpaceCapacity(spaces)
    if (capacity !== undefined) {
      this.#capacityBytes = 2 ** Math.ceil(Math.log2(Math.max(1, capacity)))
    }
    values.rssAnonBytes = values.rssBytes
    values.heapPhysicalBytes = values.heapTotalBytes
    const limit = heapSizeLimit(this.#given, this.#capacityBytes)
    if (limit !== undefined) values.heapSizeLimitBytes = limit
  }

  #bounds () {
    return heapBounds(
      {
        heldBytes: this.#heldBytes,
        semiSpaceCapacityBytes: this.#capacityBytes || undefined,
        semiSpaceMaxBytes: undefined,
        worker: false
      },
      this.#given
    )
  }
}

/** @param {NonNullable<import('@memwatch/agent/protocol/frame').Values['gc']>} rows */
const countMajors = rows =>
  Object.entries(rows).reduce(
    (sum, [key, row]) => (key.startsWith('major/') ? sum + row[PAUSE_ROW.count] : sum),
    0
  )

module.exports = { StoredTarget }

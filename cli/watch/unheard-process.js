'use strict'

const { Witness } = require('@memwatch/exporter/process/witness')

/** Interval of samples: a heap of 256 MiB can be full within two seconds. */
const SAMPLE_EVERY_MS = 100
/** Samples stored; beyond that every second one is dropped, and sampling slows down by half. */
const MOST_SAMPLES = 200

/**
 * A process that has not reported, as the kernel shows it: its RSS, and kills for memory in its
 * cgroup. Sampling ends when it reports.
 */
class UnheardProcess {
  #witness
  #isHeard
  #beganMs = performance.now()
  #everyMs = SAMPLE_EVERY_MS
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #oomKills
  /** @type {{ atSeconds: number, rssBytes: number }[]} */
  rss = []

  /**
   * @param {number} pid
   * @param {() => boolean} isHeard
   */
  constructor (pid, isHeard) {
    this.pid = pid
    this.startedAtUnixMs = Date.now()
    // Only files under its process id are read while it is a child of this process: the id is not
    // reused.
    this.#witness = new Witness({ pid, startTimeTicks: NaN })
    this.#oomKills = this.#witness.oomKills()
    this.#isHeard = isHeard
    // At once it would be this program's own image, before the other one's is loaded.
    this.#wait()
  }

  #wait () {
    this.#timer = setTimeout(() => this.#sample(), this.#everyMs)
    this.#timer.unref()
  }

  #sample () {
    if (this.#isHeard()) return
    const rssBytes = this.#witness.rssBytes()
    if (rssBytes !== undefined) {
      this.rss.push({ atSeconds: (performance.now() - this.#beganMs) / 1000, rssBytes })
    }
    if (this.rss.length > MOST_SAMPLES) {
      this.rss = this.rss.filter((_, i) => i % 2 === 0)
      this.#everyMs *= 2
    }
    this.#wait()
  }

  stop () {
    clearTimeout(this.#timer)
  }

  /** Kills for memory in its cgroup since it began; undefined if they cannot be counted. */
  get oomKills () {
    const now = this.#witness.oomKills()
    return now === undefined || this.#oomKills === undefined ? undefined : now - this.#oomKills
  }
}

module.exports = { UnheardProcess }

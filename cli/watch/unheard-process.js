'use strict'

const { Witness } = require('@memwatch/exporter/process/witness')

/** Interval of samples: a heap of 256 MiB can be full within two seconds. */
const SAMPLE_EVERY_MS = 100
/**
 * Upper bound of stored samples. Beyond it every second sample is dropped, and the sampling rate is
 * halved.
 */
const MOST_SAMPLES = 200

/**
 * Reads RSS and OOM kills of a process that has not reported yet, from the kernel. Sampling ends
 * when the process reports.
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
    // Files under its pid are read only while it is a child of this process, so the pid cannot be
    // reused.
    this.#witness = new Witness({ pid, startTimeTicks: NaN })
    this.#oomKills = this.#witness.oomKills()
    this.#isHeard = isHeard
    // The first sample is delayed: immediately after the fork, the process still has the memory of
    // this program.
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

  /** Number of OOM kills in its cgroup since it started; undefined if unknown. */
  get oomKills () {
    const now = this.#witness.oomKills()
    return now === undefined || this.#oomKills === undefined ? undefined : now - this.#oomKills
  }
}

module.exports = { UnheardProcess }

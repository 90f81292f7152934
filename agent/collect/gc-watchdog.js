'use strict'

const primordials = require('../primordials')

/** Least rate of major GCs that suggests a loop; the reported one had 200. */
const SUSPECT_PER_SECOND = 10
/** Such frames in a row: a benchmark of ten seconds is no loop. */
const SUSPECT_FRAMES = 10
/** Least growth of heap or external memory for which V8 runs a major GC. */
const STILL_BYTES = 2 ** 20
/** Length of a short break: enough frames for a mean of the CPU time, and few missed GCs. */
const BREAK_FRAMES = 5
/** A break helped if the thread takes less than this share of its earlier CPU time. */
const HELPED_SHARE = 0.5
/** Breaks in a row that must help before a long one. */
const PROOFS = 3
/** First and longest of the long breaks: each is twice as long as the one before. */
const LONG_BREAK_FRAMES = 60
const LONGEST_BREAK_FRAMES = 600
/** Wait after a break that did not help. Older proofs expire. */
const AGAIN_AFTER_SECONDS = 600

/**
 * @typedef {object} Seen state at one frame
 * @property {number} majors major GCs so far, without those on request
 * @property {number} scavenges so far
 * @property {number} [heapUsedBytes]
 * @property {number} [externalBytes]
 */

/**
 * States of the watchdog.
 *
 *   watching    the observer is connected, without signs of a loop
 *   suspecting  such signs; ten frames in a row start a break
 *   paused      a break; then watching
 *
 * @typedef {'watching' | 'suspecting' | 'paused'} State
 */

/**
 * Each delivery to the observer of GCs is said to cause the next major GC on an idle loop
 * (nodejs/node#62721). Twelve loads did not show it, so its signs are assumed: major GCs without
 * scavenges while heap and external memory stand still. A break disconnects the observer for some
 * frames. After three breaks in a row that lowered the CPU time, breaks become longer.
 */
class GcWatchdog {
  /** Duration of all breaks so far, up to the last frame. */
  unobservedSeconds = 0

  /** @type {State} */
  #state = 'watching'
  /** Frames in this state. */
  #frames = 0
  /** Length of the current break. */
  #breakFrames = 0
  /** Breaks in a row that helped. */
  #helped = 0
  #resumedAtSeconds = -Infinity
  #notBeforeSeconds = -Infinity
  #suspectCpuShare = 0
  #since = { atSeconds: 0, cpuSeconds: 0 }
  #last
  #heapUsed = new Range()
  #external = new Range()
  #disconnect
  #connect
  #cpuMs
  #nowMs

  /**
   * @param {{ disconnect: () => void, connect: () => void, cpuMs?: () => number,
   *   nowMs?: () => number }} dependencies
   */
  constructor ({
    disconnect, connect, cpuMs = primordials.cpuMs, nowMs = primordials.nowMs
  }) {
    this.#disconnect = disconnect
    this.#connect = connect
    this.#cpuMs = cpuMs
    this.#nowMs = nowMs
    this.#last = { atSeconds: nowMs() / 1000, majors: 0, scavenges: 0 }
  }

  /** True during a break: no GC is counted until the next frame. */
  get onBreak () {
    return this.#state === 'paused'
  }

  /** Call it each frame. @param {Seen} seen */
  check ({ majors, scavenges, heapUsedBytes = NaN, externalBytes = NaN }) {
    const atSeconds = this.#nowMs() / 1000
    const last = this.#last
    this.#last = { atSeconds, majors, scavenges }
    const seconds = atSeconds - last.atSeconds
    if (this.onBreak) {
      this.unobservedSeconds += seconds
      if (++this.#frames >= this.#breakFrames) this.#resume(atSeconds)
      return
    }
    const newMajors = majors - last.majors
    const isChase = newMajors >= SUSPECT_PER_SECOND * seconds &&
      scavenges - last.scavenges < newMajors / 2
    if (!isChase || atSeconds < this.#notBeforeSeconds) {
      this.#state = 'watching'
      return
    }
    const isStill = this.#heapUsed.add(heapUsedBytes) < STILL_BYTES &&
      this.#external.add(externalBytes) < STILL_BYTES
    if (this.#state === 'watching' || !isStill) {
      this.#suspect(atSeconds, heapUsedBytes, externalBytes)
    } else if (++this.#frames >= SUSPECT_FRAMES) {
      this.#pause(atSeconds)
    }
  }

  /**
   * @param {number} atSeconds
   * @param {number} heapUsedBytes
   * @param {number} externalBytes
   */
  #suspect (atSeconds, heapUsedBytes, externalBytes) {
    this.#state = 'suspecting'
    this.#heapUsed.begin(heapUsedBytes)
    this.#external.begin(externalBytes)
    this.#beginFrames(atSeconds)
  }

  /** @param {number} atSeconds */
  #pause (atSeconds) {
    this.#suspectCpuShare = this.#readCpuShare(atSeconds)
    if (atSeconds - this.#resumedAtSeconds > AGAIN_AFTER_SECONDS) this.#helped = 0
    const isProven = this.#helped >= PROOFS
    const longFrames = LONG_BREAK_FRAMES * 2 ** (this.#helped - PROOFS)
    this.#breakFrames = isProven ? Math.min(longFrames, LONGEST_BREAK_FRAMES) : BREAK_FRAMES
    this.#state = 'paused'
    this.#beginFrames(atSeconds)
    this.#disconnect()
  }

  /** @param {number} atSeconds */
  #resume (atSeconds) {
    if (this.#readCpuShare(atSeconds) < HELPED_SHARE * this.#suspectCpuShare) {
      this.#helped++
    } else {
      this.#helped = 0
      this.#notBeforeSeconds = atSeconds + AGAIN_AFTER_SECONDS
    }
    this.#state = 'watching'
    this.#resumedAtSeconds = atSeconds
    this.#connect()
  }

  /** @param {number} atSeconds */
  #beginFrames (atSeconds) {
    this.#since = { atSeconds, cpuSeconds: this.#cpuMs() / 1000 }
    this.#frames = 0
  }

  /** CPU seconds a second since this state began. @param {number} atSeconds */
  #readCpuShare (atSeconds) {
    const { atSeconds: sinceSeconds, cpuSeconds } = this.#since
    return (this.#cpuMs() / 1000 - cpuSeconds) / (atSeconds - sinceSeconds)
  }
}

/** Range of numbers. An unknown one makes the range NaN, which is below no limit. */
class Range {
  #least = NaN
  #most = NaN

  /** @param {number} value */
  begin (value) {
    this.#least = this.#most = value
  }

  /**
   * @param {number} value
   * @returns {number} largest less smallest; NaN: unknown
   */
  add (value) {
    this.#least = Math.min(this.#least, value)
    this.#most = Math.max(this.#most, value)
    return this.#most - this.#least
  }
}

module.exports = {
  GcWatchdog, SUSPECT_FRAMES, BREAK_FRAMES, LONG_BREAK_FRAMES, LONGEST_BREAK_FRAMES
}

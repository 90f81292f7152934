'use strict'

const primordials = require('../primordials')

/** Major GCs a second that chase each other: the reported loop had two hundred. */
const SUSPECT_PER_SECOND = 10
/** Frames in a row that must look like it: a benchmark of ten seconds is no loop. */
const SUSPECT_FRAMES = 10
/** Least that V8 lets a heap or external memory grow by before it runs a major GC for it. */
const STILL_BYTES = 2 ** 20
/** Frames without the observer: enough for a mean of the CPU time, few enough to be missed. */
const BREAK_FRAMES = 5
/** A break helped where the thread takes less than this share of the CPU time without observer. */
const HELPED_SHARE = 0.5
/** Breaks that must help, one after the other, before a long one. */
const PROOFS = 3
/** The first long break, and the longest: each is twice as long as the one before it. */
const LONG_BREAK_FRAMES = 60
const LONGEST_BREAK_FRAMES = 600
/** A break that did not help is not repeated for so long; proofs that are older are forgotten. */
const AGAIN_AFTER_SECONDS = 600

/**
 * @typedef {object} Seen at one frame
 * @property {number} majors major GCs so far that the app did not ask for
 * @property {number} scavenges so far
 * @property {number} [heapUsedBytes]
 * @property {number} [externalBytes]
 */

/**
 * States of the watchdog; each is left with a frame.
 *
 *   watching    GCs are observed, and nothing looks like a loop
 *   suspecting  major GCs chase each other; ten such frames in a row lead to a break
 *   paused      a break: nobody observes GCs, for some frames; then watching
 */
const STATES = Object.freeze({
  watching: 'watching',
  suspecting: 'suspecting',
  paused: 'paused'
})

/**
 * Watches the observer of GCs, where there is one. It was reported to keep major GCs going on an
 * idle loop, two hundred a second, each delivery causing the next one (nodejs/node#62721, seen on
 * 24.14 and 25.9). No version showed it when tried with twelve shapes of load, so it is told by its
 * traces: major GCs without scavenges while heap and external memory stand still. An app's own GCs
 * follow what it allocates, which moves one of them.
 *
 * Then observing stops for some frames and begins anew, which ends a loop that only keeps itself
 * going. Where the CPU time fell meanwhile, three times in a row, breaks become longer. Observing
 * is never given up for good.
 */
class GcWatchdog {
  /** All breaks so far, up to the last frame. */
  unobservedSeconds = 0

  /** @type {keyof typeof STATES} */
  #state = STATES.watching
  /** Frames in this state. */
  #frames = 0
  /** Frames that the current break lasts. */
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
  #cpuUsage
  #nowMs

  /**
   * @param {object} dependencies
   * @param {() => void} dependencies.disconnect
   * @param {() => void} dependencies.connect
   * @param {() => NodeJS.CpuUsage} [dependencies.cpuUsage] µs so far, of this thread where known
   * @param {() => number} [dependencies.nowMs]
   */
  constructor ({
    disconnect,
    connect,
    cpuUsage = primordials.threadCpuUsage ?? primordials.cpuUsage,
    nowMs = primordials.nowMs
  }) {
    this.#disconnect = disconnect
    this.#connect = connect
    this.#cpuUsage = cpuUsage
    this.#nowMs = nowMs
    this.#last = { atSeconds: nowMs() / 1000, majors: 0, scavenges: 0 }
  }

  /** True during a break: GCs are not counted until the next frame. */
  get onBreak () {
    return this.#state === STATES.paused
  }

  /** Called each frame. @param {Seen} seen */
  look ({ majors, scavenges, heapUsedBytes = NaN, externalBytes = NaN }) {
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
      this.#state = STATES.watching
      return
    }
    const isStill = this.#heapUsed.add(heapUsedBytes) < STILL_BYTES &&
      this.#external.add(externalBytes) < STILL_BYTES
    if (this.#state === STATES.watching || !isStill) {
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
    this.#state = STATES.suspecting
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
    this.#state = STATES.paused
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
    this.#state = STATES.watching
    this.#resumedAtSeconds = atSeconds
    this.#connect()
  }

  /** @param {number} atSeconds */
  #beginFrames (atSeconds) {
    const { user, system } = this.#cpuUsage()
    this.#since = { atSeconds, cpuSeconds: (user + system) / 1e6 }
    this.#frames = 0
  }

  /** CPU seconds a second since this state began. @param {number} atSeconds */
  #readCpuShare (atSeconds) {
    const { user, system } = this.#cpuUsage()
    const { atSeconds: sinceSeconds, cpuSeconds } = this.#since
    return ((user + system) / 1e6 - cpuSeconds) / (atSeconds - sinceSeconds)
  }
}

/** How far apart numbers lie. One that is not known makes the range unknown, and no limit holds. */
class Range {
  #least = NaN
  #most = NaN

  /** @param {number} value */
  begin (value) {
    this.#least = this.#most = value
  }

  /**
   * @param {number} value
   * @returns {number} from the least to the most, NaN where unknown
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

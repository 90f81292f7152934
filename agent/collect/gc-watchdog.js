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
 * Watches the watching of GCs. An observer of GCs was reported to keep major GCs going on an idle
 * loop, two hundred a second that collect nothing, each delivery causing the next one
 * (nodejs/node#62721, seen on 24.14 and 25.9). Neither these versions nor others showed it when
 * tried with twelve shapes of load, so it is told by its traces and not by a version: major GCs
 * that come without scavenges while heap and external memory stand still. An app's own GCs follow
 * what it allocates, which moves one of them.
 *
 * Then observing stops for some frames and begins anew, which ends a loop that only keeps itself
 * going. Where the CPU time fell meanwhile, three times in a row, breaks become longer. Observing
 * is never given up for good.
 *
 * watching -> break -> watching ...
 *
 * @param {object} dependencies
 * @param {() => void} dependencies.disconnect
 * @param {() => void} dependencies.connect
 * @param {() => NodeJS.CpuUsage} [dependencies.cpuUsage] µs so far, of this thread where known
 * @param {() => number} [dependencies.nowMs]
 */
function gcWatchdog ({
  disconnect,
  connect,
  cpuUsage = primordials.threadCpuUsage ?? primordials.cpuUsage,
  nowMs = primordials.nowMs
}) {
  let onBreak = false
  let unobservedSeconds = 0
  let helped = 0
  /** Frames in a row that look like a loop, -1 without; or those of a break. */
  let frames = -1
  let breakFrames = 0
  let resumedAtSeconds = -Infinity
  let notBeforeSeconds = -Infinity
  let suspectCpuShare = 0
  let since = { atSeconds: 0, cpuSeconds: 0 }
  let last = { atSeconds: nowMs() / 1000, majors: 0, scavenges: 0 }
  const heapUsed = new Range()
  const external = new Range()

  /** @param {number} atSeconds */
  function begin (atSeconds) {
    const { user, system } = cpuUsage()
    since = { atSeconds, cpuSeconds: (user + system) / 1e6 }
    frames = 0
  }
  /** CPU seconds a second since `begin`. @param {number} atSeconds */
  function readCpuShare (atSeconds) {
    const { user, system } = cpuUsage()
    return ((user + system) / 1e6 - since.cpuSeconds) / (atSeconds - since.atSeconds)
  }
  /** @param {number} atSeconds */
  function endBreak (atSeconds) {
    if (readCpuShare(atSeconds) < HELPED_SHARE * suspectCpuShare) {
      helped++
    } else {
      helped = 0
      notBeforeSeconds = atSeconds + AGAIN_AFTER_SECONDS
    }
    onBreak = false
    resumedAtSeconds = atSeconds
    frames = -1
    connect()
  }
  /** @param {number} atSeconds */
  function beginBreak (atSeconds) {
    suspectCpuShare = readCpuShare(atSeconds)
    if (atSeconds - resumedAtSeconds > AGAIN_AFTER_SECONDS) helped = 0
    breakFrames = helped < PROOFS
      ? BREAK_FRAMES
      : Math.min(LONG_BREAK_FRAMES * 2 ** (helped - PROOFS), LONGEST_BREAK_FRAMES)
    onBreak = true
    begin(atSeconds)
    disconnect()
  }

  return {
    /** Whether nobody counts GCs until the next frame. */
    get onBreak () { return onBreak },
    /** All breaks so far, up to the last frame. */
    get unobservedSeconds () { return unobservedSeconds },
    /** Called each frame. @param {Seen} seen */
    look ({ majors, scavenges, heapUsedBytes = NaN, externalBytes = NaN }) {
      const atSeconds = nowMs() / 1000
      const seconds = atSeconds - last.atSeconds
      const newMajors = majors - last.majors
      const chase = newMajors >= SUSPECT_PER_SECOND * seconds &&
        scavenges - last.scavenges < newMajors / 2
      last = { atSeconds, majors, scavenges }
      if (onBreak) {
        unobservedSeconds += seconds
        if (++frames >= breakFrames) endBreak(atSeconds)
        return
      }
      if (!chase || atSeconds < notBeforeSeconds) {
        frames = -1
        return
      }
      const isStill = heapUsed.add(heapUsedBytes) < STILL_BYTES &&
        external.add(externalBytes) < STILL_BYTES
      if (frames < 0 || !isStill) {
        heapUsed.begin(heapUsedBytes)
        external.begin(externalBytes)
        begin(atSeconds)
        return
      }
      if (++frames >= SUSPECT_FRAMES) beginBreak(atSeconds)
    }
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
  gcWatchdog, SUSPECT_FRAMES, BREAK_FRAMES, LONG_BREAK_FRAMES, LONGEST_BREAK_FRAMES
}

'use strict'

const MIB = 2 ** 20

/**
 * Semi-space sizes worth recommending; V8 rounds up to a power of two, and beyond 32 MiB measured
 * gains are small.
 */
const SEMI_SPACE_CHOICES = Object.freeze([4, 8, 16, 32].map(mib => mib * MIB))

/**
 * How GC cost falls as the semi-space grows, at the same work a second. Scavenges come less often
 * in proportion to the size. Each one copies more than before, because what is in flight no longer
 * overflows into the old space: their cost falls with a power well below one. Ordinary majors that
 * premature promotion caused all but vanish. Fitted to starving apps that serve requests, run jobs
 * and buffer streams, on Node 20, 22 and 24: docs/accuracy.md has the measurements.
 */
const SCAVENGE_COUNT_EXPONENT = 1
const SCAVENGE_COST_EXPONENT = 0.33
const MAJOR_COST_EXPONENT = 0.75

/**
 * Both halves are committed in time; garbage that waited in the old space is gone: this share of
 * both was measured.
 */
const COMMITTED_SHARE = 0.95

/** What a further doubling must save, as a share of wall time, to be worth its memory. */
const WORTH_RATIO = 0.02

/**
 * @typedef {object} YoungGeneration what the young generation costs, at the same work a second
 * @property {number} semiSpaceBytes
 * @property {number} scavengesPerSecond
 * @property {number} gcPauseRatio scavenges and ordinary majors, share of wall time
 * @property {number} extraBytes resident memory it is expected to add
 * @property {number} worthRatio what the next size up must save on this one
 */

/**
 * @param {{ semiSpaceBytes: number, scavengesPerSecond: number, scavengePauseRatio: number,
 *   ordinaryMajorPauseRatio: number }} now
 * @param {number} semiSpaceBytes
 * @returns {YoungGeneration}
 */
function predictYoungGeneration (now, semiSpaceBytes) {
  const growth = semiSpaceBytes / now.semiSpaceBytes
  return {
    semiSpaceBytes,
    scavengesPerSecond: now.scavengesPerSecond / growth ** SCAVENGE_COUNT_EXPONENT,
    gcPauseRatio: now.scavengePauseRatio / growth ** SCAVENGE_COST_EXPONENT +
      now.ordinaryMajorPauseRatio / growth ** MAJOR_COST_EXPONENT,
    extraBytes: COMMITTED_SHARE * 2 * (semiSpaceBytes - now.semiSpaceBytes),
    worthRatio: WORTH_RATIO
  }
}

module.exports = { predictYoungGeneration, SEMI_SPACE_CHOICES }

'use strict'

const MIB = 2 ** 20

/**
 * Recommended semi-space sizes. V8 rounds up to a power of two, and measured gains beyond 32 MiB
 * are small, unless much data is in use at the same time: decision 90.
 */
const SEMI_SPACE_CHOICES = Object.freeze([4, 8, 16, 32].map(mib => mib * MIB))

/**
 * Model of GC cost as the semi-space grows, at constant work a second. Scavenges become rarer in
 * proportion to the part of the size that they free. Each one copies more than before, because
 * memory of unfinished requests no longer overflows into the old space. So the total cost of
 * scavenges falls with a power of the size well below one. Ordinary major GCs caused by premature
 * promotion almost vanish. The exponents are fitted to starving apps that serve requests, run jobs
 * and buffer streams, on Node 20, 22 and 24: docs/accuracy.md has the measurements.
 */
const SCAVENGE_COST_EXPONENT = 0.33
const MAJOR_COST_EXPONENT = 0.75

/**
 * Share of the live heap, or of a larger semi-space if that is smaller, that the model lets survive
 * each scavenge. Small live heaps are largely objects in use for a short time, large ones are not.
 * Without survivors the model predicted 15 of 21 measured rates too low; in the median of all, 1.3
 * times as many scavenges were measured.
 */
const SURVIVING_SHARE = 0.5

/**
 * Measured share of both semi-spaces that adds to resident memory: V8 commits both in time, but
 * less garbage waits in the old space.
 */
const COMMITTED_SHARE = 0.95

/**
 * Memory that costs as much as a core, by the prices of large clouds: 7.5 GiB on Google's N2, 9 on
 * AWS Fargate. A larger size must save more CPU time than its memory is worth.
 */
const BYTES_PER_CORE = 7.5 * 2 ** 30

/**
 * @typedef {object} YoungGeneration cost of the young generation, at constant work per second
 * @property {number} semiSpaceBytes
 * @property {number} scavengesPerSecond
 * @property {number} gcPauseRatio share of wall time in scavenges and ordinary major GCs
 * @property {number} extraBytes resident memory that the larger size is expected to add
 * @property {number} cores cost: cores used by pauses, and the extra memory at the price of cores
 */

/**
 * @param {{ semiSpaceBytes: number, scavengesPerSecond: number, scavengePauseRatio: number,
 *   ordinaryMajorPauseRatio: number, liveBytes?: number | null }} now liveBytes: live heap
 * @param {number} semiSpaceBytes
 * @returns {YoungGeneration}
 */
function predictYoungGeneration (now, semiSpaceBytes) {
  const growth = semiSpaceBytes / now.semiSpaceBytes
  const survivingBytes =
    growth > 1 ? SURVIVING_SHARE * Math.min(now.liveBytes ?? 0, semiSpaceBytes) : 0
  const freedBytes = Math.max(now.semiSpaceBytes, semiSpaceBytes - survivingBytes)
  const gcPauseRatio = now.scavengePauseRatio / growth ** SCAVENGE_COST_EXPONENT +
    now.ordinaryMajorPauseRatio / growth ** MAJOR_COST_EXPONENT
  const extraBytes = COMMITTED_SHARE * 2 * (semiSpaceBytes - now.semiSpaceBytes)
  return {
    semiSpaceBytes,
    scavengesPerSecond: now.scavengesPerSecond * now.semiSpaceBytes / freedBytes,
    gcPauseRatio,
    extraBytes,
    cores: gcPauseRatio + extraBytes / BYTES_PER_CORE
  }
}

module.exports = { predictYoungGeneration, SEMI_SPACE_CHOICES }

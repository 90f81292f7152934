'use strict'

const { youngGenerationBytes } = require('./heap-sizing')

const MIB = 2 ** 20
/**
 * Share of the container that memwatch plans with; the rest covers memory that it cannot predict.
 */
const CONTAINER_SHARE = 0.92
/**
 * Memory that Node.js itself needs beside the heap. An idle server uses 38 to 40 MiB on Node 18 to
 * 26. On Node 20 the kernel killed a leaking app with a heap size limit of 259 MiB under a
 * container limit of 300 MiB.
 */
const NODE_BESIDE_BYTES = 48 * MIB
/**
 * Largest share of the container for the young generation. At 512 MiB it allows semi-spaces of 16
 * MiB.
 */
const YOUNG_SHARE = 0.1
/** Recommended maximum of a semi-space: larger ones gain little more, see young-generation.js. */
const ENOUGH_SEMI_SPACE_BYTES = 16 * MIB

/** Step and minimum of recommended heap limits. */
const STEP_MIB = 32
const LEAST_HEAP_MIB = 64

/**
 * Heap limit with headroom above the live heap.
 * @param {number} liveBytes
 * @param {number} liveShareRatio largest share of the limit that the live heap may fill
 * @returns {number} MiB, the unit of `--max-old-space-size`
 */
const comfortableHeapMib = (liveBytes, liveShareRatio) => Math.max(
  LEAST_HEAP_MIB,
  Math.ceil(liveBytes / liveShareRatio / (STEP_MIB * MIB)) * STEP_MIB
)

/**
 * V8 runs a major GC at the latest at this share of what the live heap leaves of its limit, and
 * marks the heap all the time if a semi-space is larger: decision 98.
 */
const USED_REST_SHARE = 0.5

/**
 * @param {number} semiSpaceBytes
 * @param {number} restBytes maximum of the old generation less the live heap
 * @returns {boolean} true if V8 would mark the heap all the time
 */
const marksAlways = (semiSpaceBytes, restBytes) => semiSpaceBytes > USED_REST_SHARE * restBytes

/**
 * Largest old generation that fits into a container beside all other memory, in steps of 16 MiB.
 * @param {{ limitBytes: number, besideBytes: number, youngBytes: number }} container
 *   besideBytes: resident memory that is not the heap
 * @returns {number} bytes; below 0 if nothing fits
 */
const fittingOldBytes = ({ limitBytes, besideBytes, youngBytes }) =>
  Math.floor((CONTAINER_SHARE * limitBytes - besideBytes - youngBytes) / MIB / 16) * 16 * MIB

/**
 * Recommended semi-space in a container: 16 MiB, or less where three of them exceed a tenth of it.
 * @param {number} limitBytes Infinity without a limit
 * @returns {number} bytes
 */
function fittingSemiSpaceBytes (limitBytes) {
  let bytes = ENOUGH_SEMI_SPACE_BYTES
  while (bytes > MIB && youngGenerationBytes(bytes) > YOUNG_SHARE * limitBytes) bytes /= 2
  return bytes
}

/** Share of the old generation above which a live heap makes V8 collect often. */
const COMFORTABLE_SHARE = 0.65

/**
 * @param {number} liveBytes
 * @returns {number} bytes of an old generation with enough room for the live heap, in steps of 16
 *   MiB
 */
const comfortableOldBytes = liveBytes =>
  Math.ceil(liveBytes / COMFORTABLE_SHARE / MIB / 16) * 16 * MIB

/**
 * Container limit that fits a live heap, in steps of 64 MiB.
 * @param {{ liveBytes: number, besideBytes: number, youngBytes: number }} needs
 * @returns {number} bytes
 */
const neededContainerBytes = ({ liveBytes, besideBytes, youngBytes }) =>
  Math.ceil(
    (liveBytes / COMFORTABLE_SHARE + youngBytes + besideBytes) / CONTAINER_SHARE / (64 * MIB)
  ) *
  64 *
  MIB

module.exports = {
  CONTAINER_SHARE,
  fittingOldBytes,
  comfortableOldBytes,
  neededContainerBytes,
  fittingSemiSpaceBytes,
  marksAlways,
  comfortableHeapMib,
  ENOUGH_SEMI_SPACE_BYTES,
  NODE_BESIDE_BYTES,
  USED_REST_SHARE
}

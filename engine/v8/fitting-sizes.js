'use strict'

const { youngGenerationBytes } = require('./heap-sizing')

const MIB = 2 ** 20
/** Of the container, this much may be used by what memwatch can add up. */
const CONTAINER_SHARE = 0.92
/**
 * What Node.js itself takes beside the heap: a server that idles has 38 to 40 MiB on Node 18 to 26,
 * and a leak under a limit of 300 MiB with a heap size limit of 259 was still killed by the kernel
 * on Node 20.
 */
const NODE_BESIDE_BYTES = 48 * MIB
/**
 * A young generation that takes more of the container is no longer a detail; at 512 MiB that allows
 * semi-spaces of 16 MiB.
 */
const YOUNG_SHARE = 0.1
/** Larger semi-spaces gain little more: young-generation.js. */
const ENOUGH_SEMI_SPACE_BYTES = 16 * MIB

/** Heap limits are advised in steps of this, and none below the least. */
const STEP_MIB = 32
const LEAST_HEAP_MIB = 64

/**
 * The heap limit that leaves room above the live heap.
 * @param {number} liveBytes
 * @param {number} liveShareRatio of the limit that the live heap may fill
 * @returns {number} MiB, as `--max-old-space-size` takes it
 */
const comfortableHeapMib = (liveBytes, liveShareRatio) => Math.max(
  LEAST_HEAP_MIB,
  Math.ceil(liveBytes / liveShareRatio / (STEP_MIB * MIB)) * STEP_MIB
)

/**
 * The largest old generation that fits a container beside all else, in steps of 16 MiB.
 * @param {{ limitBytes: number, besideBytes: number, youngBytes: number }} container besideBytes:
 *   resident memory that is not the heap
 * @returns {number} bytes, below 0 where nothing fits
 */
const fittingOldBytes = ({ limitBytes, besideBytes, youngBytes }) =>
  Math.floor((CONTAINER_SHARE * limitBytes - besideBytes - youngBytes) / MIB / 16) * 16 * MIB

/**
 * The semi-space worth having in a container: 16 MiB, less where three of them are more than a
 * tenth of it.
 * @param {number} limitBytes Infinity without a limit
 * @returns {number} bytes
 */
function fittingSemiSpaceBytes (limitBytes) {
  let bytes = ENOUGH_SEMI_SPACE_BYTES
  while (bytes > MIB && youngGenerationBytes(bytes) > YOUNG_SHARE * limitBytes) bytes /= 2
  return bytes
}

/** A live heap that fills more of the old generation makes V8 collect often. */
const COMFORTABLE_SHARE = 0.65

/**
 * @param {number} liveBytes
 * @returns {number} bytes of old generation that such a live heap is at ease in, in steps of 16 MiB
 */
const comfortableOldBytes = liveBytes =>
  Math.ceil(liveBytes / COMFORTABLE_SHARE / MIB / 16) * 16 * MIB

/**
 * The container that a live heap takes, in steps of 64 MiB.
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
  fittingOldBytes,
  comfortableOldBytes,
  neededContainerBytes,
  fittingSemiSpaceBytes,
  comfortableHeapMib,
  ENOUGH_SEMI_SPACE_BYTES,
  NODE_BESIDE_BYTES
}

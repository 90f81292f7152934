'use strict'

const { chosenSizes, youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')
const { flagsInForce, flagMegabytes } = require('@memwatch/engine/v8/flags')
const { formatBytes } = require('@memwatch/engine/text/format')
const { LARGEST_SEMI_SPACE_BYTES } = require('./new-space')

const MIB = 2 ** 20
/**
 * Heap size limits that V8 chooses in containers of half a gigabyte and more, up to the largest
 * machine.
 */
const CHOSEN_BYTES = [512, 1024, 2048, 4096, 16_384].map(
  megabytes => chosenSizes(11, 3, megabytes * MIB).heapSizeLimitBytes
)
/**
 * V8 version of each Node.js version, as far as it matters to heap sizes.
 * @type {Record<string, [major: number, minor: number]>}
 */
const V8 = {
  18: [10, 2],
  19: [10, 8],
  20: [11, 3],
  21: [11, 8],
  22: [12, 4],
  23: [12, 9],
  24: [13, 6],
  25: [14, 1],
  26: [14, 6]
}

/**
 * Maximum of a semi-space that flags set. V8 rounds it up to a power of two.
 * @param {import('./define-source').Given} given
 * @returns {number | undefined} bytes; undefined without the flag
 */
function semiSpaceOfFlags ({ nodeOptions = [] }) {
  const flags = flagsInForce({ nodeOptions, execArgv: [] })
  const megabytes = flagMegabytes(flags, '--max-semi-space-size')
  return megabytes === undefined ? undefined : 2 ** Math.ceil(Math.log2(megabytes)) * MIB
}

/**
 * Heap size limit of a process, from the known facts of its start.
 * @param {import('./define-source').Given} given
 * @param {number} semiSpaceBytes maximum of a semi-space, if the flags do not set it: three
 *   semi-spaces are part of the limit
 * @returns {number | undefined}
 */
function heapSizeLimit (given, semiSpaceBytes) {
  const { nodeOptions = [], containerLimitBytes, nodeVersion } = given
  const flags = flagsInForce({ nodeOptions, execArgv: [] })
  const whole = flagMegabytes(flags, '--max-heap-size')
  if (whole !== undefined) return whole * MIB
  const old = flagMegabytes(flags, '--max-old-space-size')
  const percentage = flagMegabytes(flags, '--max-old-space-size-percentage')
  const v8 = V8[parseInt(nodeVersion ?? '')]
  const chosen =
    containerLimitBytes === undefined
      ? undefined
      : chosenSizes(...(v8 ?? V8[20]), containerLimitBytes)
  const semi = semiSpaceOfFlags(given) ?? (v8 && chosen ? chosen.semiSpaceBytes : semiSpaceBytes)
  if (percentage !== undefined && containerLimitBytes !== undefined) {
    return (
      Math.floor(((containerLimitBytes / MIB) * percentage) / 100) * MIB +
      youngGenerationBytes(semi)
    )
  }
  if (old !== undefined) return old * MIB + youngGenerationBytes(semi)
  return chosen && chosen.oldBytes + youngGenerationBytes(semi)
}

/**
 * Bounds of an unknown heap limit: from the smallest limit that V8 chooses by itself and that holds
 * the observed heap, to the largest one.
 * @param {number} heldBytes largest observed heap
 * @returns {{ leastBytes: number, mostBytes: number }}
 */
function openHeapSizeLimit (heldBytes) {
  const largest = CHOSEN_BYTES[CHOSEN_BYTES.length - 1]
  const leastBytes =
    CHOSEN_BYTES.find(bytes => bytes >= heldBytes) ?? Math.ceil(heldBytes / 2 ** 30) * 2 ** 30
  return { leastBytes, mostBytes: Math.max(largest, 2 * leastBytes) }
}

/**
 * @param {object} seen
 * @param {number} seen.heldBytes largest observed heap
 * @param {number | undefined} seen.semiSpaceCapacityBytes
 * @param {number | undefined} seen.semiSpaceMaxBytes
 * @param {boolean} seen.worker true for a worker, whose resourceLimits may be as low as the
 *   observed heap
 * @param {import('./define-source').Given} given
 * @returns {import('./bounded').Bounds | undefined} undefined if the limit is known
 */
function heapBounds (
  { heldBytes, semiSpaceCapacityBytes = MIB, semiSpaceMaxBytes, worker },
  given
) {
  const limit = heapSizeLimit(given, semiSpaceMaxBytes ?? semiSpaceCapacityBytes)
  const open = openHeapSizeLimit(heldBytes)
  const least = worker ? Math.min(heldBytes, limit ?? Infinity) : (limit ?? open.leastBytes)
  const most = limit ?? open.mostBytes
  if (least === most && semiSpaceMaxBytes !== undefined) return undefined
  const assumed = (/** @type {number} */ bytes) =>
    least === most
      ? undefined
      : `The heap size limit is unknown; this result assumes ${formatBytes(bytes)}.`
  return {
    least: {
      assumed: assumed(least),
      values: { heapSizeLimitBytes: least },
      semiSpaceMaxBytes: semiSpaceMaxBytes ?? semiSpaceCapacityBytes
    },
    most: {
      assumed: assumed(most),
      values: { heapSizeLimitBytes: most },
      semiSpaceMaxBytes: semiSpaceMaxBytes ?? LARGEST_SEMI_SPACE_BYTES
    }
  }
}

module.exports = { heapBounds, heapSizeLimit, semiSpaceOfFlags, V8 }

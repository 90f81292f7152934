'use strict'

const {
  chosenSizes, derivedSemiSpace, followsHeap, roundUpToPowerOfTwo, youngGenerationBytes
} = require('./heap-sizing')

const MB = 2 ** 20

/**
 * Heap flags in MB. V8 treats 0 like an absent flag.
 * @typedef {object} SizeFlags
 * @property {number} [oldMb] --max-old-space-size
 * @property {number} [semiMb] --max-semi-space-size
 * @property {number} [heapMb] --max-heap-size; V8 exits at start if all three are given
 */

/**
 * Sizes of a heap under flags: Heap::ConfigureHeap (src/heap/heap.cc), checked against Node 18 to
 * 26. They hold for 64-bit builds without pointer compression.
 * @param {number} v8Major
 * @param {number} v8Minor
 * @param {number} memoryBytes memory that V8 sees
 * @param {SizeFlags} flags
 * @returns {import('./heap-sizing').HeapSizes}
 */
function sizesUnderFlags (v8Major, v8Minor, memoryBytes, { oldMb = 0, semiMb = 0, heapMb = 0 }) {
  const chosen = chosenSizes(v8Major, v8Minor, memoryBytes)
  const heapBytes = heapMb * MB
  let { semiSpaceBytes } = chosen
  if (semiMb > 0) semiSpaceBytes = roundUpToPowerOfTwo(semiMb * MB)
  else if (heapMb > 0) {
    const youngBytes =
      oldMb > 0 ? Math.max(0, heapBytes - oldMb * MB) : youngOf(v8Major, v8Minor, heapBytes)
    semiSpaceBytes = Math.max(
      roundUpToPowerOfTwo(youngBytes / 3),
      followsHeap(v8Major, v8Minor) ? MB / 2 : MB
    )
  }
  const { oldBytes } =
    oldMb > 0
      ? { oldBytes: oldMb * MB }
      : heapMb > 0
        ? { oldBytes: Math.max(0, heapBytes - youngGenerationBytes(semiSpaceBytes)) }
        : chosen
  return {
    oldBytes,
    semiSpaceBytes,
    heapSizeLimitBytes: oldBytes + youngGenerationBytes(semiSpaceBytes)
  }
}

/**
 * Part of --max-heap-size that becomes the young generation: GenerationSizesFromHeapSize. Before V8
 * 14.6 V8 chooses the largest old generation that fits together with the young generation derived
 * from it. V8 searches for it by bisection, and so does this function.
 * @param {number} v8Major
 * @param {number} v8Minor
 * @param {number} heapBytes
 */
function youngOf (v8Major, v8Minor, heapBytes) {
  if (followsHeap(v8Major, v8Minor)) {
    const youngBytes =
      Math.ceil(
        youngGenerationBytes(derivedSemiSpace(v8Major, v8Minor, { oldBytes: 0, heapBytes })) / MB
      ) * MB
    return youngBytes < heapBytes ? youngBytes : 0
  }
  let youngBytes = 0
  for (let lower = 0, upper = heapBytes; lower + 1 < upper;) {
    const oldBytes = lower + Math.floor((upper - lower) / 2)
    const wantedBytes = youngGenerationBytes(
      derivedSemiSpace(v8Major, v8Minor, { oldBytes, heapBytes })
    )
    if (oldBytes + wantedBytes <= heapBytes) {
      youngBytes = wantedBytes
      lower = oldBytes
    } else upper = oldBytes
  }
  return youngBytes
}

module.exports = { sizesUnderFlags }

'use strict'

const { flagsInForce, flagMegabytes } = require('./flags')

/**
 * @typedef {object} HeapSizes
 * @property {number} oldBytes maximum of the old generation
 * @property {number} semiSpaceBytes maximum of one semi-space; the new space has two
 * @property {number} heapSizeLimitBytes v8.getHeapStatistics().heap_size_limit: the old generation
 *   and three semi-spaces
 */

const MB = 2 ** 20
/** V8 rounds generation sizes up to its page size, 256 KiB. */
const PAGE = 2 ** 18

/**
 * @param {number} bytes
 * @param {number} step
 */
const roundUp = (bytes, step) => Math.ceil(bytes / step) * step
/** @param {number} bytes */
const roundUpToPowerOfTwo = bytes => 2 ** Math.ceil(Math.log2(bytes))

/**
 * Memory of a machine whose old generation may have 4 GiB. V8 up to 11.3 requires 15.5 GiB, later
 * versions 15 GiB. The limit is 15872 MiB on Node 18 to 20, and 15360 MiB on Node 21 to 26.
 * @param {number} v8Major
 * @param {number} v8Minor
 */
const largeMemoryBytes = (v8Major, v8Minor) =>
  (v8Major < 11 || (v8Major === 11 && v8Minor <= 3) ? 15.5 : 15) * 1024 * MB

/**
 * True if V8 derives the young generation from the maximum heap size, or from a quarter of the
 * memory, as it does from V8 14.6 on. Earlier versions derive it from the old generation.
 * @param {number} v8Major
 * @param {number} v8Minor
 */
const followsHeap = (v8Major, v8Minor) => v8Major > 14 || (v8Major === 14 && v8Minor >= 6)

/**
 * Size of one semi-space that V8 derives, before it is rounded to a power of two:
 * YoungGenerationSizeFromOldGenerationSize, and YoungGenerationSizeFromHeapSize from V8 14.6 on.
 * @param {number} v8Major
 * @param {number} v8Minor
 * @param {{ oldBytes: number, heapBytes: number }} from heapBytes: a quarter of the memory, or
 *   --max-heap-size
 * @returns {number} bytes
 */
function derivedSemiSpace (v8Major, v8Minor, { oldBytes, heapBytes }) {
  const lowMemory = oldBytes <= 256 * MB
  let semi
  if (followsHeap(v8Major, v8Minor)) semi = Math.max(Math.min(heapBytes / 32, 32 * MB), 2 * MB)
  else if (v8Major <= 12) semi = Math.min(oldBytes / (lowMemory ? 256 : 128), 16 * MB)
  else semi = Math.min(oldBytes / (lowMemory ? 256 : 32), 64 * MB)
  return roundUp(Math.max(semi, MB), PAGE)
}

/**
 * Heap sizes that V8 chooses without flags. The rules are those of V8's
 * Heap::HeapSizeFromPhysicalMemory and YoungGenerationSizeFromOldGenerationSize (src/heap/heap.cc),
 * checked against Node 18 to 26 under memory limits from 128 MiB to 24 GB. They hold for 64-bit
 * builds without pointer compression.
 *
 * @param {number} v8Major 10 … 14
 * @param {number} v8Minor distinguishes Node 25 (14.1) from Node 26 (14.6)
 * @param {number} memoryBytes the smaller of the machine's memory and the limit that V8 sees
 * @returns {HeapSizes}
 */
function chosenSizes (v8Major, v8Minor, memoryBytes) {
  const largest = memoryBytes >= largeMemoryBytes(v8Major, v8Minor) ? 4096 * MB : 2048 * MB
  const oldBytes = roundUp(Math.max(Math.min(memoryBytes / 2, largest), 256 * MB), PAGE)
  const semiSpaceBytes = roundUpToPowerOfTwo(
    derivedSemiSpace(v8Major, v8Minor, { oldBytes, heapBytes: memoryBytes / 4 })
  )
  return {
    oldBytes,
    semiSpaceBytes,
    heapSizeLimitBytes: oldBytes + youngGenerationBytes(semiSpaceBytes)
  }
}

/**
 * V8 counts three semi-spaces as the young generation: two halves of the new space, and the same
 * size again for new large objects. Heap::YoungGenerationSizeFromSemiSpaceSize in src/heap/heap.cc.
 */
const SEMI_SPACES = 3
/**
 * @param {number} semiSpaceBytes
 * @returns {number} bytes of the young generation
 */
const youngGenerationBytes = semiSpaceBytes => SEMI_SPACES * semiSpaceBytes
/**
 * @param {number} semiSpaceBytes
 * @returns {number} bytes of the new space: its two halves
 */
const newSpaceBytes = semiSpaceBytes => 2 * semiSpaceBytes

/**
 * @typedef {object} SemiSpaceMax
 * @property {number} bytes maximum of one semi-space of this isolate
 * @property {'flag' | 'resource-limits' | 'derived' | 'seen'} origin
 * @property {string} because one sentence: the origin of the number
 */

/**
 * Maximum semi-space of a running isolate. V8 has no getter for it. It follows from the flags.
 * Without flags it follows from the heap size limit, which is the old generation plus three
 * semi-spaces.
 *
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @param {number} heapSizeLimitBytes as the isolate reports it
 * @returns {SemiSpaceMax | null} null if it cannot be derived
 */
function semiSpaceMax (hello, heapSizeLimitBytes) {
  const flags = flagsInForce(hello)
  const semiFlagMb = flagMegabytes(flags, '--max-semi-space-size')
  if (semiFlagMb !== undefined) {
    const bytes = roundUpToPowerOfTwo(semiFlagMb * MB)
    return { bytes, origin: 'flag', because: `--max-semi-space-size=${semiFlagMb} is set` }
  }
  const youngMb = hello.threadId > 0 ? hello.resourceLimits?.maxYoungGenerationSizeMb : undefined
  if (youngMb) {
    return {
      bytes: (youngMb * MB) / SEMI_SPACES,
      origin: 'resource-limits',
      because: `the young generation of this worker may have up to ${youngMb} MB`
    }
  }
  const [v8Major, v8Minor] = hello.v8.split('.').map(Number)
  const memoryBytes = Math.min(
    hello.constrainedBytes ?? Infinity,
    hello.hostMemoryBytes ?? Infinity
  )
  const oldFlagMb = flagMegabytes(flags, '--max-old-space-size')
  if (oldFlagMb !== undefined) {
    const third = (heapSizeLimitBytes - roundUp(oldFlagMb * MB, PAGE)) / SEMI_SPACES
    if (third >= MB / 2) {
      return {
        bytes: third,
        origin: 'derived',
        because:
          'V8 derived it from the memory size that Node.js reported; --max-old-space-size does not change it'
      }
    }
  }
  if (hello.pointerCompression || !Number.isFinite(memoryBytes) || !Number.isFinite(v8Major)) {
    return seen(hello)
  }
  const chosen = chosenSizes(v8Major, v8Minor, memoryBytes)
  if (chosen.heapSizeLimitBytes !== heapSizeLimitBytes) {
    return fromLimit(heapSizeLimitBytes, v8Major, v8Minor) ?? seen(hello)
  }
  const told =
    hello.constrainedBytes !== undefined &&
    hello.constrainedBytes <= (hello.hostMemoryBytes ?? Infinity)
      ? `the container limit of ${megabytes(hello.constrainedBytes)} MB`
      : `the machine's ${megabytes(memoryBytes)} MB`
  return {
    bytes: chosen.semiSpaceBytes,
    origin: 'derived',
    because: `V8 ${hello.v8} derived it from ${told}: old generation ` +
      `${megabytes(chosen.oldBytes)} MB, semi-space ${megabytes(chosen.semiSpaceBytes)} MB`
  }
}

/**
 * Maximum of the old generation of a running isolate.
 * @param {number} heapSizeLimitBytes as the isolate reports it
 * @param {{ bytes: number } | null} semiSpace its maximum
 * @returns {number} bytes
 */
const oldGenerationLimit = (heapSizeLimitBytes, semiSpace) =>
  heapSizeLimitBytes - youngGenerationBytes(semiSpace?.bytes ?? 0)

/**
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {SemiSpaceMax | null}
 */
const seen = ({ semiSpaceMaxBytes: bytes }) =>
  bytes === undefined
    ? null
    : {
        bytes,
        origin: 'seen',
        because: 'more memory survived than it can hold, and V8 did not enlarge it; below its ' +
          'maximum V8 enlarges it'
      }

/**
 * Maximum semi-space for a heap size limit that the machine's memory does not explain, because of a
 * heap flag or a container limit that changed later. It is the one power of two for which V8's rule
 * gives this limit at some memory size.
 * @param {number} heapSizeLimitBytes
 * @param {number} v8Major
 * @param {number} v8Minor
 * @returns {SemiSpaceMax | null}
 */
function fromLimit (heapSizeLimitBytes, v8Major, v8Minor) {
  for (let semi = MB; semi <= 64 * MB; semi *= 2) {
    const oldBytes = heapSizeLimitBytes - youngGenerationBytes(semi)
    // This inverts chosenSizes: an old generation results from memory of twice its size.
    if (
      oldBytes > 0 &&
      chosenSizes(v8Major, v8Minor, oldBytes * 2).heapSizeLimitBytes === heapSizeLimitBytes
    ) {
      return {
        bytes: semi,
        origin: 'derived',
        because: 'it is the only one that fits the heap size limit of ' +
          `${megabytes(heapSizeLimitBytes)} MB`
      }
    }
  }
  return null
}

/** @param {number} bytes */
const megabytes = bytes => Number((bytes / MB).toFixed(1))

module.exports = {
  chosenSizes,
  derivedSemiSpace,
  followsHeap,
  newSpaceBytes,
  oldGenerationLimit,
  roundUpToPowerOfTwo,
  semiSpaceMax,
  youngGenerationBytes
}

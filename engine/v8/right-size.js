'use strict'

const { tailLevel } = require('../statistics/tail-level')
const { fittingSemiSpaceBytes, comfortableOldBytes, CONTAINER_SHARE, NODE_BESIDE_BYTES } =
  require('./fitting-sizes')
const { flagsInForce, flagMegabytes } = require('./flags')
const { roundUpToPowerOfTwo, youngGenerationBytes } = require('./heap-sizing')
const { planCase } = require('./plan-case')
const { FULL_SHARE } = require('./plan-live')
const { explainSizes } = require('./right-size-text')

const MIB = 2 ** 20
/** Step to which sizes are rounded. */
const STEP_BYTES = 16 * MIB
/** A heap below this is not worth a container. */
const LEAST_OLD_BYTES = 32 * MIB
/** Probability that a day exceeds a size: once in about three years. */
const DAY_CHANCE = 0.001
/** Quantile of the minute peaks that the request covers. */
const REQUEST_QUANTILE = 0.99
/**
 * Margin above the highest day: a tenth, and more if few days were observed. After N days the next
 * day is the highest one with a probability of 1 / (N + 1).
 */
const MARGIN_RATIO = 0.1
const MARGIN_RATIO_DAYS = 0.15
const MOST_MARGIN_RATIO = 1
/**
 * Factor on the limit after a death from memory at sizes that fitted together; Kubernetes' VPA uses
 * the same.
 */
const DEATH_RAISE = 1.2
/**
 * Observed days that make the confidence medium, and high: a week contains a weekend.
 */
const MEDIUM_DAYS = 2
const HIGH_DAYS = 7

/** Ids of diagnoses of unbounded growth, which fills any size. */
const LEAKS = Object.freeze([
  'js-heap-leak', 'context-leak', 'native-memory-leak', 'resource-leak'
])

/** Flags that set the size of the heap. */
const SIZE_FLAGS = Object.freeze([
  '--max-old-space-size', '--max-old-space-size-percentage', '--max-semi-space-size',
  '--max-heap-size'
])

/**
 * @typedef {'oom_kill' | 'heap_oom'} MemoryDeath reasons of deaths, as /api/v1/deaths names them
 *
 * @typedef {object} RightSizeRequest
 * @property {import('./size-days').SizeDays} days
 * @property {string[]} leaks ids of confirmed diagnoses among LEAKS
 * @property {MemoryDeath[]} deaths from memory in the observed days
 * @property {Present} present
 * @property {Process} [process] undefined if the source does not describe the process: V8's own
 *   choice is unknown then, and the answer contains every flag
 * @property {boolean} [guaranteed] true for equal request and limit, as in a Guaranteed pod
 *
 * @typedef {object} Present
 * @property {number | null} memoryLimitBytes null without a limit
 * @property {number | null} heapSizeLimitBytes
 *
 * @typedef {object} Process
 * @property {import('./node-versions').NodeVersion} version
 * @property {import('./plan-case').GivenFlags} flags
 * @property {import('./plan-case').Host} host
 * @property {'v1' | 'v2'} cgroup
 * @property {boolean} limitOnParent true if the limit is on a parent cgroup, which Node.js does not
 *   read
 *
 * Sizes that fit together.
 * @typedef {object} Sizes
 * @property {number} requestBytes
 * @property {number} limitBytes
 * @property {number} oldBytes bytes of the old generation of each heap
 * @property {number} semiSpaceBytes
 * @property {Record<string, number>} flags flags that make V8 choose these sizes, in MiB; empty if
 *   V8 chooses them without flags
 * @property {{ oldBytes: number | null, semiSpaceBytes: number | null } | null} unset sizes that V8
 *   chooses in the container without flags; null if unknown
 *
 * @typedef {object} RightSize
 * @property {'sized' | 'leak' | 'no_history'} state
 * @property {'low' | 'medium' | 'high'} confidence
 * @property {number} days observed
 * @property {number} containers
 * @property {Present} present
 * @property {Sizes | null} sizes null unless sized
 * @property {Partial<Record<'request' | 'limit' | 'oldGeneration' | 'semiSpace', string>>} reasons
 *   explanation of each size; empty unless sized
 * @property {string[]} notes sentences
 */

/**
 * Computes request, limit and heap size of a workload together. The old generation holds the live
 * heap of the highest day and the garbage between two major GCs; the limit holds a full heap and
 * the memory beside it. So the heap limit is reached before the kernel kills the process, and V8
 * runs a major GC before either.
 * @param {RightSizeRequest} request
 * @returns {RightSize}
 */
function rightSize (request) {
  const { days, leaks, present } = request
  /** @type {RightSize} */
  const answer = {
    state: leaks.length > 0 ? 'leak' : 'sized',
    confidence: days.length < MEDIUM_DAYS ? 'low' : days.length < HIGH_DAYS ? 'medium' : 'high',
    days: days.length,
    containers: days.containers,
    present,
    sizes: null,
    reasons: {},
    notes: []
  }
  const needs = findNeeds(request)
  if (answer.state !== 'sized' || !needs) {
    if (answer.state === 'sized') answer.state = 'no_history'
    return { ...answer, ...explainSizes(answer, { request }) }
  }
  answer.sizes = chooseSizes(needs, request)
  return { ...answer, ...explainSizes(answer, { request, needs }) }
}

/**
 * Memory needs on the highest days, with margins.
 * @typedef {object} Needs
 * @property {number} marginRatio
 * @property {number} peakBytes highest observed minute peak of the container
 * @property {number} requestPeakBytes quantile of the minute peaks
 * @property {number} liveHighestBytes observed maximum
 * @property {boolean} isLiveKnown false if no major GC was observed: the heap in use replaces the
 *   live heap then
 * @property {number} liveBytes
 * @property {number} usedBytes heap in use, with garbage
 * @property {number} besideHighestBytes as observed
 * @property {number} besideBytes
 * @property {number} wholeRatio memory of the container relative to its largest process
 *
 * @param {RightSizeRequest} request
 * @returns {Needs | null} null if nothing was measured
 */
function findNeeds ({ days }) {
  const peakBytes = days.highest('memoryBytes')
  const ownBytes = days.highest('ownBytes')
  const requestPeakBytes = days.peakQuantile(REQUEST_QUANTILE)
  const usedHighestBytes = days.highest('heapUsedBytes')
  if (peakBytes === null || ownBytes === null || requestPeakBytes === null ||
    usedHighestBytes === null) return null
  const marginRatio = Math.min(MOST_MARGIN_RATIO, MARGIN_RATIO + MARGIN_RATIO_DAYS / days.length)
  /**
   * @param {import('./size-days').SizeName} name
   * @param {number} highest
   */
  const level = (name, highest) => Math.max(
    (1 + marginRatio) * highest,
    tailLevel(days.maxima(name), DAY_CHANCE)
  )
  const live = days.highest('liveHeapBytes')
  const beside = days.highest('besideBytes') ?? NODE_BESIDE_BYTES
  const usedBytes = level('heapUsedBytes', usedHighestBytes)
  return {
    marginRatio,
    peakBytes,
    requestPeakBytes,
    isLiveKnown: live !== null,
    liveHighestBytes: live ?? usedHighestBytes,
    liveBytes: live === null ? usedBytes : level('liveHeapBytes', live),
    usedBytes,
    besideHighestBytes: beside,
    besideBytes: level('besideBytes', beside),
    wholeRatio: peakBytes / ownBytes
  }
}

/**
 * @param {Needs} needs
 * @param {RightSizeRequest} request
 * @returns {Sizes}
 */
function chooseSizes (needs, { deaths, present, process, guaranteed = false }) {
  const hasRoom = fitsTogether(needs, present)
  const oldBytes = Math.max(
    LEAST_OLD_BYTES,
    neededOldBytes(needs),
    deaths.includes('heap_oom') ? DEATH_RAISE * (present.heapSizeLimitBytes ?? 0) : 0
  )
  const leastLimitBytes = deaths.includes('oom_kill')
    // If the heap could outgrow the container, this was the cause of the death, and the flag fixes
    // it without a higher limit.
    ? (hasRoom ? DEATH_RAISE : 1) * (present.memoryLimitBytes ?? 0)
    : 0
  const old = roundUp(oldBytes)
  /** @param {number} semiSpaceBytes */
  const limitFor = semiSpaceBytes => roundUp(Math.max(
    leastLimitBytes,
    (needs.wholeRatio * (old + youngGenerationBytes(semiSpaceBytes) + needs.besideBytes)) /
      CONTAINER_SHARE
  ))
  const ownSemi = process && flagMegabytes(flagsInForce(process.flags), '--max-semi-space-size')
  const semiSpaceBytes = ownSemi === undefined
    ? fittingSemiSpaceBytes(limitFor(fittingSemiSpaceBytes(Infinity)))
    : roundUpToPowerOfTwo(ownSemi * MIB)
  const limitBytes = limitFor(semiSpaceBytes)
  const request = roundUp((1 + MARGIN_RATIO) * needs.requestPeakBytes)
  const unset = process ? chosenByV8(limitBytes, process) : null
  const sizes = { oldBytes: old, semiSpaceBytes, limitBytes }
  return {
    requestBytes: guaranteed ? limitBytes : Math.min(limitBytes, request),
    ...sizes,
    // Size flags that are already set stay in force unless the answer contains each of them.
    flags: neededFlags(sizes, needs, process && setsSizes(process) ? null : unset),
    unset: unset && { oldBytes: unset.oldBytes, semiSpaceBytes: unset.semiSpaceBytes }
  }
}

/**
 * Old generation for a live heap. It has comfortable room for garbage, or less if the heap in use,
 * with its garbage, never needed that much. It is never so small that V8 runs major GCs all the
 * time.
 * @param {Needs} needs
 * @returns {number} bytes
 */
const neededOldBytes = ({ liveBytes, usedBytes }) => Math.max(
  liveBytes / FULL_SHARE,
  Math.min(comfortableOldBytes(liveBytes), usedBytes)
)

/**
 * True if a full heap fits into the present container, beside all other memory.
 * @param {Needs} needs
 * @param {Present} present
 */
const fitsTogether = ({ besideHighestBytes }, { memoryLimitBytes, heapSizeLimitBytes }) =>
  memoryLimitBytes !== null && heapSizeLimitBytes !== null &&
  heapSizeLimitBytes + besideHighestBytes <= memoryLimitBytes

/**
 * Flags without which V8 would choose other sizes in the container.
 * @param {{ oldBytes: number, semiSpaceBytes: number, limitBytes: number }} sizes
 * @param {Needs} needs
 * @param {import('./plan-case').PlanCase['sizes'] | null} unset sizes that V8 chooses without flags;
 *   null: all flags are needed
 * @returns {Record<string, number>} MiB
 */
function neededFlags ({ oldBytes, semiSpaceBytes, limitBytes }, needs, unset) {
  const flags = {
    '--max-old-space-size': oldBytes / MIB,
    '--max-semi-space-size': semiSpaceBytes / MIB
  }
  if (!unset) return flags
  const semiNeeded = unset.semiSpaceBytes !== semiSpaceBytes
  const fullBytes = needs.wholeRatio * (unset.heapSizeLimitBytes + needs.besideBytes)
  const fits = unset.oldBytes !== null && unset.oldBytes >= oldBytes &&
    fullBytes <= CONTAINER_SHARE * limitBytes
  return {
    ...(!fits && { '--max-old-space-size': flags['--max-old-space-size'] }),
    ...(semiNeeded && { '--max-semi-space-size': flags['--max-semi-space-size'] })
  }
}

/**
 * Sizes that V8 chooses in a container with this limit, without size flags.
 * @param {number} limitBytes
 * @param {Process} process
 * @returns {import('./plan-case').PlanCase['sizes']}
 */
function chosenByV8 (limitBytes, { version, flags, ...rest }) {
  const others = (/** @type {string[]} */ options) => options.filter(option => !isSizeFlag(option))
  return planCase(version, limitBytes, {
    ...rest,
    flags: { nodeOptions: others(flags.nodeOptions), execArgv: others(flags.execArgv) }
  }).sizes
}

/** True for an option of Node.js that sets the size of the heap. @param {string} option */
const isSizeFlag = option => SIZE_FLAGS.includes(option.split('=')[0].replaceAll('_', '-'))

/** @param {Process} process */
const setsSizes = ({ flags }) => [...flags.nodeOptions, ...flags.execArgv].some(isSizeFlag)

/** @param {number} bytes */
const roundUp = bytes => Math.ceil(bytes / STEP_BYTES) * STEP_BYTES

module.exports = { rightSize, LEAKS, SIZE_FLAGS }

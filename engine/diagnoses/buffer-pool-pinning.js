'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { median } = require('../statistics/quantile')
const {
  formatBytes, formatKibibytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('../text/format')

/** Recommended size of a slab: it pins little, and still serves several small Buffers. */
const SMALL_SLAB_BYTES = 1024

module.exports = defineDiagnosis({
  id: 'buffer-pool-pinning',
  title: 'Small slices keep whole Buffers alive',
  severity: 'warning',
  scope: 'isolate',
  requires: ['bufferPoolBytes', 'arrayBuffersFloorBytes', 'bufferSlabsFollowed'],
  uses: [
    'rssBytes',
    'bufferSlabsKeptRatio',
    'bufferSlicesFillRatio',
    'bufferSlabsCountedBytes',
    'bufferPoolCountedRatio',
    'arrayBuffersBytes',
    'arrayBuffersTrend',
    'liveHeapBytes'
  ],
  limits: {
    // Least number of observed slabs, for a large and for a small share. Two of nine slabs were
    // alive in an app whose Buffers do not belong to the pool.
    slabsFollowed: 6,
    suspectedSlabsFollowed: 20,
    // Share of slabs that are alive after two major GCs. The second GC frees every slab whose
    // slices are all temporary.
    slabsKeptRatio: 0.5,
    suspectedSlabsKeptRatio: 0.2,
    // A count decides if it found this share of the retained Buffers.
    countedShareRatio: 0.5,
    // The pool is not the cause if fewer of the counted Buffers have the size of its slabs. Its
    // slabs may outlive their use beside other Buffers that retain more.
    poolShareRatio: 0.5,
    // Retained memory below one of these limits is no problem. After a count they apply to the part
    // that no slice uses. The second one is a share of RSS, which a worker thread does not know.
    arrayBuffersFloorBytes: 48 * 2 ** 20,
    arrayBuffersShareRatio: 0.25,
    // Steadiness of the trend above which the summary says that the retained Buffers grow.
    growsSteadinessRatio: 0.5,
    // Share of the pinned memory that a fix frees; copies of the retained data use the rest.
    releasedShareRatio: 0.9
  },
  explains: ['allocator-fragmentation', 'native-memory-leak', 'container-limit-mismatch'],
  explainsGrowthOf: 'arrayBuffersGrowthBytesPerSecond',
  holds: 'buffers',
  runbook: 'MemwatchBufferPoolPinning',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, { commands }) {
    const dismissed = ruleOut(signals, limits)
    if (dismissed) return dismissed
    const { bufferPoolBytes: slab, arrayBuffersFloorBytes: floor, rssBytes } = signals
    const kept = signals.bufferSlabsKeptRatio ?? 0
    const fill = fillOf(signals, limits)
    const isPool = kept >= limits.suspectedSlabsKeptRatio &&
      (fill === null || (signals.bufferPoolCountedRatio ?? 1) >= limits.poolShareRatio)
    const pinnedBytes = fill === null ? kept * retainedBytes(signals) : unusedBytes(signals, fill)
    const { slope = 0, steadinessRatio: steady = null } = signals.arrayBuffersTrend ?? {}
    const grows = (steady ?? 0) > limits.growsSteadinessRatio
    // Agents that cannot count slices leave the size of the slices unknown.
    const isCertain = fill !== null ||
      (kept >= limits.slabsKeptRatio && !commands?.includes('count_slices'))
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      summary: (isPool
        ? `${formatRatio(kept)} of the Buffer pool's slabs of ${formatKibibytes(slab)} stay ` +
          'alive because the app keeps slices of them'
        : `The app keeps slices of Buffers, which fill ${formatRatio(fill ?? 0)} of the memory ` +
          'that they keep alive') +
        `: ${formatBytes(grows ? retainedBytes(signals) : floor)} stay in Buffers` +
        `${grows ? `, and grow by ${formatValue(slope, 'bytesPerSecond')}` : ''}.`,
      finding: {
        slabBytes: isPool ? slab : null,
        poolRatio: signals.bufferPoolCountedRatio ?? 1,
        pinnedBytes,
        retainedBytes: floor,
        rssBytes,
        isFillKnown: fill !== null
      },
      evidence: showEvidence(signals, limits, isPool),
      impact: fill === null
        ? `Up to ${formatBytes(kept * floor)} are held by slices that may need only a fraction ` +
          'of it. If the slices fill their slabs, they are a cache: limit its size.'
        : `About ${formatBytes(pinnedBytes)} are held by slices that do not use them.`
    }
  },

  fix ({ slabBytes, poolRatio, pinnedBytes, retainedBytes, rssBytes, isFillKnown }, _, limits) {
    // Slices that fill their slabs save nothing.
    const predicted = (/** @type {number} */ savedBytes) => {
      if (!isFillKnown) return []
      const saved = limits.releasedShareRatio * savedBytes
      return [
        rssBytes === null
          ? prediction('arrayBuffersFloorBytes', retainedBytes, Math.max(0, retainedBytes - saved))
          : prediction('rssBytes', rssBytes, rssBytes - saved)
      ]
    }
    const copies = {
      title: 'Copy the kept parts',
      change: {
        code: 'If the app stores a small part of a message – an id, a token, a header – store ' +
          'a copy with its own memory: const own = Buffer.allocUnsafeSlow(part.length); ' +
          'part.copy(own). Or keep a string (part.toString()). ' +
          (slabBytes === null
            ? 'Buffer.from(part) helps less: its copy may keep a slab of the Buffer pool alive.'
            : 'Buffer.from(part) does not help: it uses the same pool.')
      },
      predicted: predicted(pinnedBytes),
      risk: 'Each kept part costs a small allocation. Temporary parts need no copy.' +
        (isFillKnown ? '' : ' If the kept parts fill their slabs, this frees nothing.')
    }
    if (slabBytes === null) return [copies]
    const smallerShare = Math.max(0, 1 - SMALL_SLAB_BYTES / slabBytes)
    return [
      copies,
      {
        title: 'Or make the slabs smaller',
        change: {
          code: "At the start of the app: require('node:buffer').Buffer.poolSize = " +
            `${SMALL_SLAB_BYTES} (now ${slabBytes}). A kept slice then keeps at most this much ` +
            'memory alive.'
        },
        predicted: predicted(poolRatio * pinnedBytes * smallerShare),
        risk: 'If the kept parts fill their slabs, this frees nothing. Temporary small Buffers ' +
          'are allocated more often: some CPU. A part of a Buffer larger than half a slab keeps ' +
          'this whole Buffer alive.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'poolRatio' | 'pinnedBytes' | 'retainedBytes', number> &
 *   Record<'slabBytes' | 'rssBytes', number | null> & { isFillKnown: boolean }} Finding slabBytes:
 *   null if the Buffers do not belong to the pool; rssBytes: null in a worker thread; poolRatio:
 *   share of the Buffers that may belong to the pool; isFillKnown: true if pinnedBytes excludes
 *   what the slices use
 */

/**
 * Share of the retained Buffers that slices and other views fill; null if a count found none of
 * them, or too few.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function fillOf (signals, { countedShareRatio }) {
  const { bufferSlicesFillRatio: fill, bufferSlabsCountedBytes: counted } = signals
  return (counted ?? 0) >= countedShareRatio * signals.arrayBuffersFloorBytes ? fill : null
}

/**
 * Retained bytes of Buffers. They lie between the level half a minute ago, which has grown since,
 * and the present level, which includes garbage.
 * @param {Signals} signals
 */
const retainedBytes = ({ arrayBuffersFloorBytes: floor, arrayBuffersBytes: now }) =>
  median([floor, now ?? floor])

/**
 * @param {Signals} signals
 * @param {number} fill ratio
 * @returns {number} retained bytes of Buffers that no view uses
 */
const unusedBytes = (signals, fill) => (1 - fill) * retainedBytes(signals)

/**
 * Least retained memory that is worth a finding.
 * @param {number | null} rssBytes
 * @param {Limits} limits
 */
const leastBytes = (rssBytes, { arrayBuffersFloorBytes, arrayBuffersShareRatio }) =>
  Math.max(arrayBuffersFloorBytes, arrayBuffersShareRatio * (rssBytes ?? 0))

/**
 * Do Buffers retain much memory that no slice uses, or slabs of the pool that outlive their use?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const { arrayBuffersFloorBytes: floor, rssBytes, bufferSlabsFollowed: followed } = signals
  const { bufferSlabsKeptRatio: kept } = signals
  const isLittle = (/** @type {number} */ bytes) =>
    bytes < leastBytes(rssBytes, limits)
  if (isLittle(floor)) {
    return ok(`${formatBytes(floor)} in retained Buffers: slices keep little memory alive`)
  }
  const fill = fillOf(signals, limits)
  if (fill !== null) {
    return isLittle(unusedBytes(signals, fill))
      ? ok(`slices and other views fill ${formatRatio(fill)} of the retained Buffers, by a ` +
        'count: these Buffers are in use')
      : null
  }
  const seen = `${formatNumber(followed)} slabs of the Buffer pool were observed to their end`
  if (followed <= 0) return ok(`${seen}: the retained Buffers do not belong to the pool`)
  const tooFew = unknown(`${seen}: too few to compute a share`)
  if (kept === null || followed < limits.slabsFollowed) return tooFew
  if (kept < limits.suspectedSlabsKeptRatio) {
    return ok(`${formatRatio(kept)} of ${formatNumber(followed)} slabs of the Buffer pool ` +
      'outlived their use. Slices of other Buffers are not followed')
  }
  const isEnough = kept >= limits.slabsKeptRatio || followed >= limits.suspectedSlabsFollowed
  return isEnough ? null : tooFew
}

/**
 * @param {number} bytes
 * @param {number | null} rssBytes
 */
const sayShare = (bytes, rssBytes) =>
  rssBytes === null ? '' : `, ${formatRatio(bytes / rssBytes)} of RSS`

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {boolean} isPool true: slabs of the pool outlive their use
 */
function showEvidence (signals, limits, isPool) {
  const { bufferPoolBytes: slab, arrayBuffersFloorBytes: floor, rssBytes } = signals
  const { arrayBuffersTrend, bufferSlabsFollowed: followed, bufferSlabsKeptRatio: kept } = signals
  const fill = fillOf(signals, limits)
  const leastUnused = leastBytes(rssBytes, limits)
  return listEvidence(
    isPool && evidence('bufferSlabsKeptRatio', kept ?? 0, limits.slabsKeptRatio, (value, limit) =>
      `Of ${formatNumber(followed)} checked slabs, ${value} were still alive two major GCs ` +
      `after they were used up (threshold ${limit}).`),
    fill !== null && evidence('bufferSlicesFillRatio', fill,
      Math.max(0, 1 - leastUnused / retainedBytes(signals)), (value, limit) =>
        `Slices and other views fill ${value} of the retained Buffers (threshold ${limit}), by a ` +
        'count of all views.'),
    evidence('arrayBuffersFloorBytes', floor, limits.arrayBuffersFloorBytes, (value, limit) =>
      `At least ${value} of Buffers are retained${sayShare(floor, rssBytes)} ` +
      `(threshold ${limit}).`),
    isPool && evidence('bufferPoolBytes', slab, slab, () =>
      `One kept slice of a few bytes holds a slab of ${formatKibibytes(slab)}.`),
    rssBytes !== null &&
      evidence('rssBytes', rssBytes, floor / limits.arrayBuffersShareRatio, value =>
        `RSS is ${value}.`),
    arrayBuffersTrend && arrayBuffersTrend.rise > 0 && [
      evidence('arrayBuffersRiseBytes', arrayBuffersTrend.rise, 0, value =>
        `The retained Buffers grew by ${value} in ${formatSeconds(arrayBuffersTrend.seconds)}.`),
      evidence('arrayBuffersGrowthBytesPerSecond', arrayBuffersTrend.slope, 0, value =>
        `That is ${value}.`)
    ]
  )
}

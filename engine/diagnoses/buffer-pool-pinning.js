'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { median } = require('../statistics/quantile')
const {
  formatBytes, formatKibibytes, formatNumber, formatRatio, formatValue
} = require('../text/format')

/** Recommended size of a slab: it pins little, and still serves several small Buffers. */
const SMALL_SLAB_BYTES = 1024

module.exports = defineDiagnosis({
  id: 'buffer-pool-pinning',
  title: 'Small slices keep whole pool slabs alive',
  severity: 'warning',
  scope: 'isolate',
  requires: ['bufferPoolBytes', 'arrayBuffersFloorBytes', 'rssBytes', 'bufferSlabsFollowed'],
  uses: [
    'bufferSlabsKeptRatio',
    'bufferSlicesFillRatio',
    'bufferSlabsCountedBytes',
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
    // Slices that fill more of their slabs are Buffers in use: copies of them free little.
    slicesFillRatio: 0.5,
    // A count decides if it found this share of the slabs that stay alive.
    countedShareRatio: 0.5,
    // Retained Buffers below this are no problem, whatever slabs they belong to.
    arrayBuffersFloorBytes: 48 * 2 ** 20,
    arrayBuffersShareRatio: 0.25,
    // Steadiness of the trend above which the summary says that the retained Buffers grow.
    growsSteadinessRatio: 0.5,
    // Share of the pinned memory that a fix frees; copies of the retained data use the rest.
    releasedShareRatio: 0.9
  },
  explains: ['allocator-fragmentation'],
  holds: 'buffers',
  runbook: 'MemwatchBufferPoolPinning',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, { commands }) {
    const dismissed = ruleOut(signals, limits)
    if (dismissed) return dismissed
    const { bufferPoolBytes: slab, arrayBuffersFloorBytes: floor, rssBytes } = signals
    const kept = signals.bufferSlabsKeptRatio ?? 0
    // The retained bytes lie between the level half a minute ago, which has grown since, and the
    // present level, which includes garbage.
    const fill = fillOf(signals, limits)
    const heldBytes = kept * median([floor, signals.arrayBuffersBytes ?? floor])
    const pinnedBytes = (1 - (fill ?? 0)) * heldBytes
    const { slope = 0, steadinessRatio: steady = null } = signals.arrayBuffersTrend ?? {}
    const grows = (steady ?? 0) > limits.growsSteadinessRatio
    // The level half a minute ago is too low for Buffers that grow.
    const told = grows ? signals.arrayBuffersBytes ?? floor : floor
    // Agents that cannot count slices leave the size of the slices unknown.
    const isCounted = fill !== null || !commands?.includes('count_slices')
    return {
      state: kept >= limits.slabsKeptRatio && isCounted ? 'confirmed' : 'suspected',
      summary: `${formatRatio(kept)} of the Buffer pool's slabs of ${formatKibibytes(slab)} stay ` +
        `alive because the app keeps slices of them: ${formatBytes(told)} stay in Buffers` +
        `${grows ? `, and grow by ${formatValue(slope, 'bytesPerSecond')}` : ''}.`,
      finding: { slabBytes: slab, pinnedBytes, rssBytes, isFillKnown: fill !== null },
      evidence: showEvidence(signals, limits, kept),
      impact: fill === null
        ? `Up to ${formatBytes(kept * floor)} are held by slices that may need only a fraction ` +
          'of it. If the slices fill their slabs, they are a cache: limit its size.'
        : `About ${formatBytes(pinnedBytes)} are held by slices that do not use them.`
    }
  },

  fix ({ slabBytes, pinnedBytes, rssBytes, isFillKnown }, _, limits) {
    const smallerShare = Math.max(0, 1 - SMALL_SLAB_BYTES / slabBytes)
    // Slices that fill their slabs save nothing.
    const predicted = (/** @type {number} */ savedBytes) => isFillKnown
      ? [prediction('rssBytes', rssBytes, rssBytes - limits.releasedShareRatio * savedBytes)]
      : []
    return [
      {
        title: 'Copy the kept parts',
        change: {
          code: 'If the app stores a small part of a message – an id, a token, a header – store ' +
            'a copy with its own memory: const own = Buffer.allocUnsafeSlow(part.length); ' +
            'part.copy(own). Or keep a string (part.toString()). Buffer.from(part) does not ' +
            'help: it uses the same pool.'
        },
        predicted: predicted(pinnedBytes),
        risk: 'Each kept part costs a small allocation. Temporary parts need no copy. If the ' +
          'kept parts fill their slabs, this frees nothing.'
      },
      {
        title: 'Or make the slabs smaller',
        change: {
          code: "At the start of the app: require('node:buffer').Buffer.poolSize = " +
            `${SMALL_SLAB_BYTES} (now ${slabBytes}). A kept slice then keeps at most this much ` +
            'memory alive.'
        },
        predicted: predicted(pinnedBytes * smallerShare),
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
 * @typedef {Record<'slabBytes' | 'pinnedBytes' | 'rssBytes', number> & { isFillKnown: boolean }}
 *   Finding isFillKnown: true if pinnedBytes excludes what the slices use
 */

/**
 * Share of their slabs that slices fill; null if a count found none of them, or too few.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function fillOf (signals, { countedShareRatio }) {
  const { bufferSlicesFillRatio: fill, bufferSlabsCountedBytes: counted } = signals
  const { bufferSlabsKeptRatio: kept, arrayBuffersFloorBytes: floor } = signals
  return (counted ?? 0) >= countedShareRatio * (kept ?? 0) * floor ? fill : null
}

/**
 * Do Buffers retain much memory, in slabs of the pool that outlive their use?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const { arrayBuffersFloorBytes: floor, rssBytes, bufferSlabsFollowed: followed } = signals
  const { bufferSlabsKeptRatio: kept } = signals
  if (floor < limits.arrayBuffersFloorBytes || floor / rssBytes < limits.arrayBuffersShareRatio) {
    return ok(`${formatBytes(floor)} in retained Buffers: slices keep little memory alive`)
  }
  const seen = `${formatNumber(followed)} slabs of the Buffer pool were observed to their end`
  if (followed <= 0) return ok(`${seen}: the retained Buffers do not belong to the pool`)
  const tooFew = unknown(`${seen}: too few to compute a share`)
  if (kept === null || followed < limits.slabsFollowed) return tooFew
  if (kept < limits.suspectedSlabsKeptRatio) {
    return ok(`${formatRatio(kept)} of ${formatNumber(followed)} pool slabs outlived their use: ` +
      'slices do not keep them alive')
  }
  const fill = fillOf(signals, limits)
  if (fill !== null && fill >= limits.slicesFillRatio) {
    return ok(`slices keep ${formatRatio(kept)} of the pool's slabs alive, and fill ` +
      `${formatRatio(fill)} of them: these Buffers are in use`)
  }
  const isEnough = kept >= limits.slabsKeptRatio || followed >= limits.suspectedSlabsFollowed
  return isEnough ? null : tooFew
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} kept ratio of the slabs
 */
function showEvidence (signals, limits, kept) {
  const { bufferPoolBytes: slab, arrayBuffersFloorBytes: floor, rssBytes } = signals
  const { arrayBuffersTrend, bufferSlabsFollowed: followed } = signals
  const fill = fillOf(signals, limits)
  return listEvidence(
    evidence('bufferSlabsKeptRatio', kept, limits.slabsKeptRatio, (value, limit) =>
      `Of ${formatNumber(followed)} checked slabs, ${value} were still alive two major GCs ` +
      `after they were used up (threshold ${limit}).`),
    fill !== null &&
      evidence('bufferSlicesFillRatio', fill, limits.slicesFillRatio, (value, limit) =>
        `Slices fill ${value} of the slabs that they keep alive (threshold ${limit}), by a count ` +
        'of all Buffers.'),
    evidence('arrayBuffersFloorBytes', floor, limits.arrayBuffersFloorBytes, (value, limit) =>
      `${value} of Buffers are retained, ${formatRatio(floor / rssBytes)} of RSS (threshold ` +
      `${limit}).`),
    evidence('bufferPoolBytes', slab, slab, () =>
      `One kept slice of a few bytes holds a slab of ${formatKibibytes(slab)}.`),
    evidence('rssBytes', rssBytes, floor / limits.arrayBuffersShareRatio, value =>
      `RSS is ${value}.`),
    arrayBuffersTrend && evidence('arrayBuffersRiseBytes', arrayBuffersTrend.rise, 0, value =>
      `The retained Buffers changed by ${value} along the line of their trend.`)
  )
}

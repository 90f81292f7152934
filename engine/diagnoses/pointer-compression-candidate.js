'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { comment } = require('../text/comment')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { newSpaceBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
/**
 * Share of the heap saved by pointers of 4 bytes: published figures are about half for
 * pointer-heavy heaps. Strings and numbers save nothing.
 */
const SAVED_SHARE = { least: 0.25, likely: 0.4, most: 0.5 }
/** Share of V8's memory in objects and their garbage; the rest is free space in pages. */
const HEAP_IN_USE_SHARE = 0.9
/**
 * Versions of the published images of Node.js with pointer compression: the fix names `newest` for
 * apps on this version or a later one, and `older` for all others.
 */
const CAGED = Object.freeze({ newest: 26, older: 25 })

module.exports = defineDiagnosis({
  id: 'pointer-compression-candidate',
  title: 'Pointer compression would halve much of this heap',
  severity: 'info',
  opportunity: true,
  scope: 'isolate',
  requires: [
    'liveHeapBytes',
    'liveHeapHighestBytes',
    'rssBytes',
    'pointerSpaceShareRatio',
    'addonsSeen'
  ],
  uses: [
    'v8AddonsLoaded',
    'unreadAddonsLoaded',
    'heapResidentBytes',
    'semiSpaceCapacityBytes',
    'liveHeapTrend',
    'keptTrend',
    'rssTrend'
  ],
  limits: {
    // Largest live heap. Pointer compression limits each isolate to a cage of 4 GiB, which must
    // have headroom.
    liveHeapBytes: 2.5 * 1024 * MIB,
    // Least saving that is worth another build, in bytes and as a share of RSS.
    gainBytes: 40 * MIB,
    gainShareRatio: 0.2,
    // Least share of the live heap in old space. Old space contains objects, whose pointers shrink.
    // The large object space contains mostly strings and arrays.
    pointerSpaceShareRatio: 0.6,
    // A heap that grows by this share has a more urgent problem.
    growthShareRatio: 0.15
  },
  explains: [],
  // The size of a heap that may leak says nothing about the heap without the leak.
  openBeside: ['js-heap-leak', 'context-leak'],

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, target) {
    const gain = gainOf(signals, SAVED_SHARE.likely)
    const dismissed = ruleOutGain(signals, limits, target, gain) ?? ruleOutHeap(signals, limits)
    if (dismissed) return dismissed
    const rise = findRise(signals)
    const { liveHeapHighestBytes: live, rssBytes } = signals
    const garbage = countsGarbage(signals)
      ? `, and V8 holds ${formatBytes(heldBytes(signals))} including garbage`
      : ''
    return {
      // Without a trend the heap may still grow, and a growing heap has a more urgent problem.
      state: signals.unreadAddonsLoaded || rise === null ? 'suspected' : 'confirmed',
      summary: `Most of the live heap of up to ${formatBytes(live)} is objects${garbage}: ` +
        `pointer compression would save about ${formatBytes(gain)}, between ` +
        `${formatBytes(gainOf(signals, SAVED_SHARE.least))} and ` +
        `${formatBytes(gainOf(signals, SAVED_SHARE.most))}.` +
        (rise === null ? ' It is unknown whether this heap grows.' : ''),
      finding: { gainBytes: gain, rssBytes },
      evidence: showEvidence(signals, limits, gain),
      impact: `About ${formatRatio(gain / rssBytes)} of RSS.`
    }
  },

  fix ({ gainBytes, rssBytes }, target) {
    const major = Number(target.node.split('.')[0])
    const caged = major >= CAGED.newest ? CAGED.newest : CAGED.older
    return [
      {
        title: 'Try a Node.js that is built with pointer compression',
        change: {
          dockerfile: `${comment('instead of the official image of Node ' +
            `${target.node}`)}\nFROM platformatic/node-caged:${caged}-slim`,
          code: 'Disqualified by: a heap above 4 GiB per isolate, native addons built with NAN ' +
            'or V8 headers (Node-API ones work), heap snapshots and tools that expect 8-byte ' +
              'pointers. Flags that size the heap keep their meaning. No official build has it.'
        },
        predicted: [prediction('rssBytes', rssBytes, rssBytes - gainBytes)],
        risk: 'This build of Node.js is from a third party' +
          (caged === major ? '' : ` and has another major version, ${caged}`) +
          ': test it under your load. In measurements it cost a few per cent of CPU.'
      }
    ]
  }
})

/**
 * Resident heap without the new space, which has the size that its flags allow.
 * @param {Signals} signals
 * @returns {number} bytes
 */
const heldBytes = ({ heapResidentBytes, semiSpaceCapacityBytes }) =>
  Math.max(0, (heapResidentBytes ?? 0) - newSpaceBytes(semiSpaceCapacityBytes ?? 0))

/**
 * @param {Signals} signals
 * @param {number} share
 */
const gainOf = (signals, share) =>
  share * signals.pointerSpaceShareRatio *
  Math.max(signals.liveHeapBytes, HEAP_IN_USE_SHARE * heldBytes(signals))

/**
 * True if the saving also counts garbage, which V8 keeps until the next major GC.
 * @param {Signals} signals
 */
const countsGarbage = signals =>
  HEAP_IN_USE_SHARE * heldBytes(signals) > signals.liveHeapHighestBytes

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {{ gainBytes: number, rssBytes: number }} Finding */

/** Rise of the live heap in bytes. @param {Signals} signals */
const findRise = signals => (signals.liveHeapTrend ?? signals.keptTrend)?.rise ?? null

/**
 * Is the saving too small?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {number} gain bytes
 */
function ruleOutGain ({ liveHeapHighestBytes: live, rssBytes }, limits, target, gain) {
  if (target.pointerCompression) {
    return ok('this Node.js is built with pointer compression already')
  }
  if (gain >= limits.gainBytes && gain / rssBytes >= limits.gainShareRatio) return null
  return ok(`a live heap of at most ${formatBytes(live)} leaves little to gain`)
}

/**
 * Does the heap fit a cage, and can its pointers shrink?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOutHeap (signals, limits) {
  const { liveHeapHighestBytes: live, pointerSpaceShareRatio: share } = signals
  const rise = findRise(signals)
  if ((rise ?? 0) > limits.growthShareRatio * live) {
    return unknown('the live heap grows, and its final size is unknown', { refutes: true })
  }
  if (rise === null && (signals.rssTrend?.rise ?? 0) > limits.growthShareRatio * live) {
    return unknown('RSS grows, and the live heap has no trend yet', { refutes: true })
  }
  if (live > limits.liveHeapBytes) {
    return ok(`a heap of ${formatBytes(live)} comes too near the 4 GiB that an isolate with ` +
      'pointer compression may have')
  }
  if (share < limits.pointerSpaceShareRatio) {
    return ok(`only ${formatRatio(share)} of the heap is in the space with pointers: strings and ` +
      'numbers do not shrink')
  }
  if (!signals.v8AddonsLoaded) return null
  return ok(`${formatNumber(signals.v8AddonsLoaded)} native addon(s) use V8's C++ interface, and ` +
    'must be rebuilt')
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} gain bytes
 */
function showEvidence (signals, limits, gain) {
  const { liveHeapHighestBytes: live, rssBytes, pointerSpaceShareRatio: share } = signals
  const unread = signals.unreadAddonsLoaded ?? 0
  return [
    evidence('liveHeapHighestBytes', live, limits.liveHeapBytes, (value, limit) =>
      `The live heap is at most ${value}, far from the 4 GiB of a build with pointer compression ` +
        `(candidates have up to ${limit}).`),
    evidence('pointerSpaceShareRatio', share, limits.pointerSpaceShareRatio, (value, limit) =>
      `${value} of it is in the old space, which contains objects (threshold ${limit}).`),
    evidence('v8AddonsLoaded', signals.v8AddonsLoaded ?? 0, 0, () =>
      `No loaded addon uses V8's C++ interface${unread > 0 ? `; ${unread} could not be read` : ''}.`),
    evidence('rssBytes', rssBytes, gain / limits.gainShareRatio, value => `RSS is ${value}.`)
  ]
}

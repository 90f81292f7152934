'use strict'

const { prediction } = require('./evidence')
const { isSizedByFlag, restart } = require('./container-limit-mismatch-resized')
const { formatBytes, formatNumber } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const {
  comfortableOldBytes, fittingOldBytes, fittingSemiSpaceBytes, neededContainerBytes
} = require('../v8/fitting-sizes')
const { flagsInForce } = require('../v8/flags')
const { youngGenerationBytes } = require('../v8/heap-sizing')

/** @typedef {import('./container-limit-mismatch').Limits} Limits */
/** @typedef {import('./container-limit-mismatch').Finding} Finding */
/** @typedef {import('./define-diagnosis').Fix} Fix */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

const MIB = 2 ** 20
const PERCENT = 100
const PERCENTAGE = '--max-old-space-size-percentage'
/** Least old space that a fix sets, however small the container is. */
const LEAST_HEAP_MIB = 32
/** Step of a heap size for all processes, as the readings of each are of different moments. */
const COMMON_STEP_MIB = 16
/** A semi-space that is enough for most request loads. */
const ENOUGH_SEMI_SPACE_MIB = 16

/**
 * Fixes that shrink the heaps to fit the container, or enlarge the container to fit the heaps. More
 * memory for the container comes first if the live heap would have no headroom in a smaller heap.
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Limits} limits
 * @returns {Fix[]}
 */
function fitHeaps (finding, target, limits) {
  return [...restart(finding), ...chooseHeaps(finding, target, limits)]
}

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Limits} limits
 * @returns {Fix[]}
 */
function chooseHeaps (finding, target, limits) {
  const sizes = chooseSizes(finding, target, limits)
  const { megabytes, neededBytes, isCommon } = sizes
  const { limitBytes: limit, liveBytes: live, processes } = finding
  const keep = limitHeap(finding, target, sizes)
  // A container that is large enough needs no request for memory.
  const asks = neededBytes > limit && !isCommon ? [askForMemory(finding, sizes)] : []
  const isPart = finding.shareBytes < limit
  if (isPart && finding.heapLimitBytes <= megabytes * MIB + sizes.youngBytes) {
    return [...asks, lowerOthers(finding)]
  }
  const isTight = megabytes * MIB < live / limits.liveShareRatio
  if (processes > 1 && asks.length > 0) {
    const larger = growTogether(finding, target, sizes, limits)
    return isTight || megabytes <= LEAST_HEAP_MIB ? [larger] : [larger, keep]
  }
  if (isTight) {
    if (asks.length === 0) return [keep]
    // A flag would fill the larger container, too.
    const larger = isSizedByFlag(target) ? [growTogether(finding, target, sizes, limits)] : asks
    // With less than the live heap the process would only die sooner.
    return megabytes * MIB < live ? larger : [...larger, keep]
  }
  const seesLimit = target.constrainedBytes !== undefined && target.constrainedBytes <= limit
  if (!seesLimit || !target.allowedFlags.includes(PERCENTAGE)) return [keep, ...asks]
  const percent = Math.floor((PERCENT * megabytes * MIB) / limit)
  const asShare = {
    ...keep,
    title: `The same as a share of the container: ${percent} %`,
    change: nodeFlagChange(target, { [PERCENTAGE]: percent, ...semiSpaceFlag(sizes) })
  }
  return [keep, asShare, ...asks]
}

/**
 * Sizes that fit all heaps into the container.
 * @typedef {object} Sizes
 * @property {boolean} isCommon true: the sizes suit all processes of the container
 * @property {number} megabytes size of the old space of each heap
 * @property {number | null} semiMib null if the young generation stays unchanged
 * @property {number} youngBytes size of the young generation of each heap
 * @property {number} neededBytes memory that the container needs for the present live heaps
 */

/**
 * One size for all processes of the container, because a variable reaches all of them. If it is too
 * small for one of their live heaps, each process gets a size for its share.
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Limits} limits
 * @returns {Sizes}
 */
function chooseSizes (finding, target, limits) {
  const { limitBytes, shareBytes, besideBytes, heaps, ownHeaps } = finding
  if (finding.processes > 1) {
    const sizes = sizesIn(finding, target, limits, {
      roomBytes: limitBytes,
      takenBytes: besideBytes + finding.othersBesideBytes,
      heaps
    })
    const megabytes = Math.floor(sizes.megabytes / COMMON_STEP_MIB) * COMMON_STEP_MIB
    const largestBytes = Math.max(finding.liveBytes, finding.othersLargestLiveBytes)
    if (comfortableOldBytes(largestBytes) <= megabytes * MIB) {
      return { ...sizes, megabytes, isCommon: true }
    }
  }
  return sizesIn(finding, target, limits, {
    roomBytes: shareBytes, takenBytes: besideBytes, heaps: ownHeaps
  })
}

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Limits} limits
 * @param {{ roomBytes: number, takenBytes: number, heaps: number }} room takenBytes: memory outside
 *   the heaps in it
 * @returns {Sizes} sizes of heaps that fill the room
 */
function sizesIn (finding, target, limits, { roomBytes, takenBytes, heaps }) {
  const { besideBytes, semiSpaceBytes } = finding
  const presentBytes = youngGenerationBytes(semiSpaceBytes ?? ENOUGH_SEMI_SPACE_MIB * MIB)
  // Without a flag, V8 derived the young generation from the memory that it saw, so the fix sets a
  // fitting size for it as well. A flag may be the fix of another finding.
  const isYoungLarge = !flagsInForce(target).has('--max-semi-space-size') &&
    presentBytes * heaps > limits.youngShareRatio * roomBytes
  const semiMib = isYoungLarge ? semiMibFor(finding.heaps, roomBytes / heaps) : null
  const youngBytes = semiMib === null ? presentBytes : youngGenerationBytes(semiMib * MIB)
  // The flag applies to each heap of the process, including those of its workers.
  const fittingBytes = fittingOldBytes({
    limitBytes: roomBytes,
    besideBytes: takenBytes,
    youngBytes: youngBytes * heaps
  })
  return {
    isCommon: false,
    megabytes: Math.max(LEAST_HEAP_MIB, Math.floor(fittingBytes / heaps / MIB)),
    semiMib,
    youngBytes,
    neededBytes: neededContainerBytes({
      liveBytes: finding.liveBytes + finding.othersLiveBytes,
      besideBytes: besideBytes + finding.othersBesideBytes,
      youngBytes: youngBytes * finding.heaps
    })
  }
}

/**
 * @param {number} heaps number of heaps in the container
 * @param {number} shareBytes share of one heap
 * @returns {number} MiB
 */
const semiMibFor = (heaps, shareBytes) =>
  heaps > 1 ? fittingSemiSpaceBytes(shareBytes) / MIB : ENOUGH_SEMI_SPACE_MIB

/** @param {Sizes} sizes */
const semiSpaceFlag = ({ semiMib }) => semiMib !== null && { '--max-semi-space-size': semiMib }

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Sizes} sizes
 * @returns {Fix}
 */
function limitHeap (finding, target, sizes) {
  const { liveBytes: live, rssBytes, heapLimitBytes } = finding
  const { megabytes, semiMib, youngBytes } = sizes
  const highest = finding.besideBytes + (megabytes * MIB + youngBytes) * finding.ownHeaps
  const each = finding.ownHeaps > 1 ? ' of each heap of this process' : ''
  return {
    title: `Limit the old space${each} to ${megabytes} MiB` +
      (semiMib === null ? '' : `, and semi-spaces to ${semiMib} MiB`),
    change: nodeFlagChange(target, {
      '--max-old-space-size': megabytes, ...semiSpaceFlag(sizes)
    }),
    predicted: [
      prediction('heapSizeLimitBytes', heapLimitBytes, megabytes * MIB + youngBytes),
      ...(highest < rssBytes ? [prediction('rssBytes', rssBytes, highest)] : [])
    ],
    // The fix is kept while the app grows, so the number must stay true.
    risk: 'V8 runs GCs earlier and more often. ' + (formatNumber(live) === '0'
      ? 'No major GC has shown the live heap yet.'
      : `The size was chosen when ${formatBytes(live)} of objects were live.`) +
      sayWhomItFits(finding, sizes)
  }
}

/**
 * @param {Finding} finding
 * @param {Sizes} sizes
 * @returns {string} a sentence or two, or none if the process is alone
 */
function sayWhomItFits ({ processes, shareBytes }, { isCommon }) {
  if (processes === 1) return ''
  if (isCommon) return ` The value suits each of the ${processes} processes of the container.`
  return ` The value fits this process's share of the container, ${formatBytes(shareBytes)}, with ` +
    `the pages of files that all share. ${processes} processes share it, and each needs its own ` +
    'limit.'
}

/**
 * The live heaps of several processes, or one sized by a flag, do not fit the container. Smaller
 * heaps alone would run out, and in a larger container alone the heaps would be larger, too.
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Sizes} sizes for the present container
 * @param {Limits} limits
 * @returns {Fix}
 */
function growTogether (finding, target, sizes, limits) {
  const { neededBytes } = sizes
  const larger = {
    ...finding,
    limitBytes: neededBytes,
    shareBytes: finding.shareBytes * neededBytes / finding.limitBytes
  }
  const ask = askForMemory(finding, sizes)
  const chosen = chooseSizes(larger, target, limits)
  // A young process has a small part, and may need more than the least heap later.
  if (finding.processes > 1 && chosen.megabytes <= LEAST_HEAP_MIB) return ask
  const keep = limitHeap(larger, target, chosen)
  return {
    title: `${ask.title}, and ${keep.title[0].toLowerCase()}${keep.title.slice(1)}`,
    change: { ...keep.change, ...ask.change },
    predicted: keep.predicted,
    risk: `${ask.risk} ${keep.risk}`
  }
}

/**
 * The limit of this process is small enough already; a fitting size would be larger.
 * @param {Finding} finding
 * @returns {Fix}
 */
const lowerOthers = ({ heapLimitBytes, limitBytes }) => ({
  title: 'Keep the heap limit of this process, and lower those of the others',
  change: {
    code: `The heap limit of this process, ${formatBytes(heapLimitBytes)}, is small enough. ` +
      'Lower the heap limits of the other processes, so that all heaps and the memory outside ' +
      `them fit into ${formatBytes(limitBytes)}.`
  },
  predicted: [],
  risk: 'V8 runs GCs in the other processes earlier and more often.'
})

/**
 * @param {Finding} finding
 * @param {Sizes} sizes
 * @returns {Fix}
 */
function askForMemory (finding, { neededBytes }) {
  const { liveBytes, othersLiveBytes, besideBytes, othersBesideBytes, heaps } = finding
  const [theHeaps, them] = heaps > 1 ? [`${heaps} heaps`, 'them'] : ['the heap', 'it']
  return {
    title: `Request ${formatBytes(neededBytes)} of memory`,
    change: { memoryLimitBytes: Math.round(neededBytes / MIB) * MIB },
    predicted: [],
    risk: `Computed from ${formatBytes(liveBytes + othersLiveBytes)} of live objects on ` +
      `${theHeaps} and ${formatBytes(besideBytes + othersBesideBytes)} of memory outside ${them}.`
  }
}

module.exports = { fitHeaps }

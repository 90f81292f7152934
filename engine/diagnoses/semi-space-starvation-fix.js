'use strict'

const { MOST_CPU_SHARE, prediction } = require('./evidence')
const { hasRoom, holdingSize } = require('./semi-space-starvation-causes')
const { formatBytes } = require('../text/format')
const { comfortableOldBytes, fittingOldBytes, marksAlways } = require('../v8/fitting-sizes')
const { newSpaceBytes, youngGenerationBytes } = require('../v8/heap-sizing')
const { predictYoungGeneration, SEMI_SPACE_CHOICES } = require('../v8/young-generation')
const { nodeFlagChange } = require('../fixes/node-flag')

const MIB = 2 ** 20

/**
 * @typedef {Record<'semiSpaceBytes' | 'majorsPerSecond' | 'scavengesPerSecond' |
 *   'scavengePauseRatio' | 'ordinaryMajorPauseRatio' | 'gcPauseRatio' | 'heapLimitBytes' |
 *   'heaps' | 'besideBytes' | 'heldBytes', number> &
 *   Record<'gcOfCpuRatio' | 'rssBytes' | 'shareBytes' | 'liveBytes', number | null> &
 *   { pretenures: boolean, outlive: boolean, isNeverIdle: boolean }} Finding pretenures: V8
 *   allocates in the old space; gcOfCpuRatio: share of CPU time in GC, if pauses are no reason for
 *   the finding; outlive: objects may outlive a larger new space, too; heaps: heaps in the
 *   container; besideBytes: memory outside the heap at the busiest moment of the last day;
 *   heldBytes: size of the objects that a larger new space must hold
 */
/**
 * @typedef {Record<'semiSpaceMaxBytes' | 'semiSpaceLargestBytes' | 'holdsLiveRatio' |
 *   'spareShareRatio', number>} Limits of the diagnosis
 */
/** @typedef {import('./define-diagnosis').Fix} Fix */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */
/** @typedef {import('../v8/young-generation').YoungGeneration} YoungGeneration */

/**
 * Recommends the larger new space that saves more CPU time than its memory costs, if it fits the
 * container; otherwise less data in use at the same time.
 * @param {Finding} finding
 * @param {Hello} target
 * @param {Limits} limits
 * @returns {Fix[]}
 */
function enlargeNewSpace (finding, target, limits) {
  const {
    pretenures, outlive, isNeverIdle, majorsPerSecond, rssBytes, shareBytes, heldBytes, ...now
  } = finding
  const isLarge = now.semiSpaceBytes >= limits.semiSpaceMaxBytes
  const isTrial = outlive || isLarge // the model of the effect is fitted to small semi-spaces
  // Only scavenges predict the effect of a size. Without them, the size holds the live heap.
  const held = holdingSize(heldBytes, limits) ?? limits.semiSpaceLargestBytes
  const sizes = pretenures ? [held] : SEMI_SPACE_CHOICES
  const [first, ...larger] = (isLarge ? [limits.semiSpaceLargestBytes] : sizes)
    .filter(bytes => bytes > now.semiSpaceBytes && !isCrowded(finding, bytes))
    .map(bytes => predictYoungGeneration(now, bytes))
  /** @param {typeof first} size */
  const fits = size => hasRoom(size.extraBytes, rssBytes, shareBytes, limits)
  if (first === undefined || (isLarge && !fits(first))) return [USE_LESS]
  // A larger size must save more CPU time than its memory costs, and must fit the container.
  const cheapest = larger.reduce((best, next) =>
    fits(next) && next.cores < best.cores ? next : best, first)
  const choice = pretenures || outlive ? cheapest : holdLive(cheapest, finding, limits, fits)
  const megabytes = choice.semiSpaceBytes / MIB
  const addedBytes = choice.semiSpaceBytes - now.semiSpaceBytes
  const oldMib = chooseOldMib(finding, choice.semiSpaceBytes)
  const limitRise = formatBytes(youngGenerationBytes(addedBytes))
  return [
    ...(outlive ? [USE_LESS] : []),
    {
      title: sayChange(megabytes, { isTrial, pretenures }) +
        (oldMib === null ? '' : `, and the old space to ${oldMib} MiB`),
      change: nodeFlagChange(target, {
        // V8 decides early, while semi-spaces are small, which objects begin in the old space.
        ...(pretenures && { '--min-semi-space-size': megabytes }),
        '--max-semi-space-size': megabytes,
        ...(oldMib !== null && { '--max-old-space-size': oldMib })
      }),
      predicted: [
        // No scavenge has counted what V8 allocates in the old space.
        ...(pretenures
          ? [prediction('ordinaryMajorsPerSecond', majorsPerSecond, 0)]
          : [
              ...(isTrial ? [] : [predictCost(finding, choice)]),
              prediction('scavengesPerSecond', now.scavengesPerSecond, choice.scavengesPerSecond)
            ]),
        ...(rssBytes === null
          ? []
          : [prediction('rssBytes', rssBytes, rssBytes + choice.extraBytes)])
      ],
      risk: `The new space may commit up to ${formatBytes(newSpaceBytes(addedBytes))} more` +
        (oldMib === null
          ? `, and the heap size limit rises by ${limitRise}. The old generation stays. `
          : '. With the present old space, the heap would not fit the container: use this size ' +
            'instead of that of another fix. ') +
        describeSaving(isTrial, isNeverIdle) +
        (target.threadId > 0 ? sayWorker(choice.semiSpaceBytes) : '')
    },
    ...(isLarge && !outlive ? [USE_LESS] : [])
  ]
}

/**
 * Predicts the share of time in GC pauses, or the share of CPU time in GC if that is the finding.
 * Pauses may then take longer than before: in one server they took 8.7 % of the time before and
 * 17 % after the fix, which saved 44 % of its CPU time.
 * @param {Finding} finding
 * @param {YoungGeneration} choice
 */
function predictCost (finding, choice) {
  const { gcPauseRatio, gcOfCpuRatio, scavengePauseRatio, ordinaryMajorPauseRatio } = finding
  const pauseRatio = scavengePauseRatio + ordinaryMajorPauseRatio
  if (gcOfCpuRatio === null) {
    // Pauses caused by external memory do not change.
    const savedRatio = pauseRatio - choice.gcPauseRatio
    return prediction('gcPauseRatio', gcPauseRatio, Math.max(0, gcPauseRatio - savedRatio))
  }
  const estimate = Math.min(gcOfCpuRatio, MOST_CPU_SHARE)
  const left = estimate * choice.gcPauseRatio / pauseRatio
  return prediction('ordinaryGcOfCpuRatio', gcOfCpuRatio, left / (1 - estimate + left))
}

/**
 * @param {number} megabytes
 * @param {{ isTrial: boolean, pretenures: boolean }} of
 */
function sayChange (megabytes, { isTrial, pretenures }) {
  if (isTrial) return `Try semi-spaces of up to ${megabytes} MiB`
  return pretenures
    ? `Let semi-spaces have ${megabytes} MiB from the start`
    : `Let semi-spaces grow to ${megabytes} MiB`
}

/** @param {number} semiSpaceBytes */
const sayWorker = semiSpaceBytes =>
  ' The flag applies to all threads. For this worker alone: new Worker(file, { resourceLimits: { ' +
  `maxYoungGenerationSizeMb: ${youngGenerationBytes(semiSpaceBytes) / MIB} } }).`

/**
 * @param {YoungGeneration} choice
 * @param {Finding} finding
 * @param {Limits} limits
 * @param {(size: YoungGeneration) => boolean} fits
 * @returns {YoungGeneration} the first size from the choice on that holds the live heap and fits
 *   the container beside the present old space; the choice if there is none
 */
function holdLive (choice, finding, limits, fits) {
  const neededBytes = limits.holdsLiveRatio * (finding.liveBytes ?? 0)
  const larger = [...SEMI_SPACE_CHOICES, limits.semiSpaceLargestBytes]
    .filter(bytes => bytes > choice.semiSpaceBytes && bytes >= neededBytes &&
      !isCrowded(finding, bytes))
    .map(bytes => predictYoungGeneration(finding, bytes))
  if (choice.semiSpaceBytes >= neededBytes) return choice
  // The old space is not lowered for a size that only may be better.
  return larger.find(size => fits(size) && chooseOldMib(finding, size.semiSpaceBytes) === null) ??
    choice
}

/**
 * @param {boolean} isTrial
 * @param {boolean} isNeverIdle
 */
function describeSaving (isTrial, isNeverIdle) {
  if (isTrial) {
    return 'It saves nothing if the objects in use at the same time fill it, too: memwatch ' +
      'compare measures it.'
  }
  return isNeverIdle
    ? 'The event loop is never idle, so work waits. With less GC it does more work, and the ' +
      'share of GC may fall less than predicted.'
    : 'The prediction holds for the same load. If clients wait for each answer, the throughput ' +
      'rises instead. If much of a semi-space survives each scavenge, scavenges stay more ' +
      'frequent and take longer, although they save CPU time.'
}

/**
 * Fix for objects that may outlive a new space of any size. An app with 12 concurrent requests of
 * some 2 MiB had the same share of GC with semi-spaces of 1 and of 32 MiB. With 4 requests it fell
 * from 24 to 8 %.
 * @type {import('./define-diagnosis').Fix}
 */
const USE_LESS = Object.freeze({
  title: 'Keep less data in use at the same time',
  change: {
    code: 'Limit concurrent requests or jobs, process data in smaller pages or as a stream, and ' +
      'drop intermediate results before waiting for something.'
  },
  predicted: [],
  risk: 'Fewer concurrent requests may wait longer, although each takes less CPU time.'
})

/**
 * Size of the old space beside a larger new space, so that the only heap of a container fits it.
 * @param {Finding} finding
 * @param {number} semiSpaceBytes of the fix
 * @returns {number | null} MiB; null if the heap fits, or if its live objects need more room
 */
function chooseOldMib (finding, semiSpaceBytes) {
  const { shareBytes: limitBytes, besideBytes, heapLimitBytes, heaps, liveBytes } = finding
  if (limitBytes === null || heaps > 1) return null
  const youngBytes = youngGenerationBytes(semiSpaceBytes)
  const presentBytes = heapLimitBytes - youngGenerationBytes(finding.semiSpaceBytes)
  if (presentBytes + youngBytes + besideBytes <= limitBytes) return null
  const oldBytes = fittingOldBytes({ limitBytes, besideBytes, youngBytes })
  return oldBytes < comfortableOldBytes(liveBytes ?? 0) || oldBytes >= presentBytes || oldBytes <= 0
    ? null
    : oldBytes / MIB
}

/**
 * True if V8 would mark the heap all the time with semi-spaces of this size.
 * @param {Finding} finding
 * @param {number} semiSpaceBytes
 */
function isCrowded (finding, semiSpaceBytes) {
  const oldMib = chooseOldMib(finding, semiSpaceBytes)
  const oldBytes = oldMib === null
    ? finding.heapLimitBytes - youngGenerationBytes(finding.semiSpaceBytes)
    : oldMib * MIB
  return marksAlways(semiSpaceBytes, oldBytes - (finding.liveBytes ?? 0))
}

module.exports = { enlargeNewSpace }

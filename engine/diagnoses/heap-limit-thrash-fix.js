'use strict'

const { prediction } = require('./evidence')
const { captureCommand } = require('../fixes/command')
const { formatBytes } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { USED_REST_SHARE } = require('../v8/fitting-sizes')
const { oldGenerationLimit, youngGenerationBytes } = require('../v8/heap-sizing')

/** @typedef {import('./heap-limit-thrash').Finding} Finding */
/** @typedef {import('./define-diagnosis').Fix} Fix */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

const MIB = 2 ** 20
const BINARY = 2
const powerOfTwo = (/** @type {number} */ most) => BINARY ** Math.floor(Math.log2(most))
/** A semi-space that is enough for most request loads. */
const ENOUGH_SEMI_SPACE = 16 * MIB
/**
 * Largest share of the old generation for the live heap: at 80 % of the limit GC took 20 % of the
 * time in measurements.
 */
const COMFORTABLE_SHARE = 0.65
/** Room that the app should fill before V8 starts to mark again, as a share of the live heap. */
const MARKING_ROOM_SHARE = 0.15
/**
 * Share of the container that memwatch plans to use; the rest is for page cache, stacks and
 * unpredicted memory.
 */
const CONTAINER_SHARE = 0.92
/** A smaller semi-space than this is no fix: scavenges would promote too much. */
const LEAST_SEMI_SPACE = 8 * MIB
/** Step of recommended heap limits. */
const STEP_MIB = 32
/** Least factor by which a higher limit is worth a change. */
const WORTH_GROWTH = 1.15
/**
 * Least factor for a heap whose GCs take much time. Servers at 66 to 80 % of their limit saved 23
 * to 48 % of their CPU time with 1.4 times the limit, and as much with twice the limit.
 */
const CALMING_GROWTH = 1.4
/** Least headroom that the prediction assumes, as a share of the limit. */
const LEAST_ROOM_SHARE = 0.02

/**
 * Recommends a higher heap limit if the container has room for it. Otherwise, or if the heap will
 * be full within a minute, the first fix is to retain less on the heap.
 * @param {Finding} finding
 * @param {Hello} target
 * @returns {Fix[]}
 */
function giveRoom (finding, target) {
  const { course, shareBytes, besideBytes } = finding
  const youngBytes = youngGenerationBytes(Math.max(finding.semiSpaceBytes, ENOUGH_SEMI_SPACE))
  const calming = ['thrashes', 'marks'].includes(course) ? CALMING_GROWTH : 0
  const wantedBytes = Math.max(comfortableBytes(finding), calming * oldLimitBytes(finding))
  const wanted = Math.ceil(wantedBytes / (STEP_MIB * MIB)) * STEP_MIB
  const fits = shareBytes === null
    ? Infinity
    : Math.floor((CONTAINER_SHARE * shareBytes - besideBytes - youngBytes) / MIB)
  const megabytes = Math.min(wanted, fits)
  const less = keepLess(finding, target)
  // A heap that fills is not nearly full yet: the limit is large enough for the present data.
  if (wanted <= fits && wanted * MIB < WORTH_GROWTH * oldLimitBytes(finding)) return [less]
  if (megabytes * MIB < WORTH_GROWTH * oldLimitBytes(finding)) {
    return [
      ...shrinkNewSpace(finding, target),
      less,
      enlargeContainer(finding, target, wanted, youngBytes)
    ]
  }
  const raise = raiseLimit(finding, target, megabytes, youngBytes)
  return course === 'fills'
    ? [less, raise]
    : [raise, ...shrinkNewSpace(finding, target), less]
}

/**
 * Limit of the old generation with which GC is cheap. V8 runs the next major GC at the latest
 * halfway between the live heap and the limit, and starts to mark when less than a semi-space is
 * left until then (heap.cc, heap-controller.cc). With 218 MiB alive and semi-spaces of 64 MiB, the
 * app ran 16 major GCs in 30 seconds at a limit of 256 MiB, 14 at 320 MiB, and 3 at 416 MiB.
 * @param {Finding} finding
 */
const comfortableBytes = ({ liveBytes, semiSpaceBytes }) => Math.max(
  liveBytes / COMFORTABLE_SHARE,
  liveBytes +
    (Math.max(semiSpaceBytes, ENOUGH_SEMI_SPACE) + MARKING_ROOM_SHARE * liveBytes) / USED_REST_SHARE
)

/**
 * Smaller semi-spaces, so that V8 does not mark all the time, if they fit beside the live heap.
 * With 110 of 150 MiB alive, GC fell from 14 to 0.2 % of the time with 16 instead of 32 MiB.
 * @param {Finding} finding
 * @param {Hello} target
 * @returns {Fix[]} none if the semi-spaces are not the cause, or if those that fit are too small
 */
function shrinkNewSpace (finding, target) {
  const { course, liveBytes, semiSpaceBytes, gcPauseRatio } = finding
  const usedBytes = USED_REST_SHARE * (oldLimitBytes(finding) - liveBytes)
  const fitting = powerOfTwo(usedBytes)
  const isFit = fitting >= LEAST_SEMI_SPACE && fitting < semiSpaceBytes
  if (course !== 'marks' || target.threadId > 0 || !isFit) return []
  const change = nodeFlagChange(target, { '--max-semi-space-size': fitting / MIB })
  return [
    {
      title: 'Keep the new space smaller, so that the heap limit is enough',
      change,
      predicted: [
        prediction('recentGcPauseRatio', gcPauseRatio, fitting / semiSpaceBytes * gcPauseRatio)
      ],
      risk: 'Scavenges run more often. A live heap that grows makes the limit too low again.'
    }
  ]
}

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @returns {Fix}
 */
const keepLess = ({ liveBytes }, target) => ({
  title: 'Keep less on the heap',
  change: {
    code: `${formatBytes(liveBytes)} are alive after each major GC. If they grew over time, it ` +
      `is a leak: find the retained objects (${captureCommand(target, 'heap_profile')}). If the ` +
      'app needs this data, keep it outside the heap (Buffers, a file, a database) or in fewer ' +
      'objects.'
  },
  predicted: [],
  risk: 'This takes time. A restart helps until then.'
})

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {number} wanted MiB
 * @param {number} youngBytes
 * @returns {Fix}
 */
function enlargeContainer (finding, target, wanted, youngBytes) {
  const { containerLimitBytes: limit, besideBytes, processes } = finding
  const isShared = processes > 1
  return {
    title: limit === null
      ? 'Give the heap more room'
      : 'Give the container more memory: this one of ' +
        `${formatBytes(limit)}${isShared ? `, which ${processes} processes share,` : ''} has no ` +
        `room for the heap of ${wanted} MiB that the app needs`,
    change: limitChange(finding, target, wanted),
    predicted: predictEffect(finding, wanted),
    risk: `${isShared ? 'This process' : 'The container'} needs about ` +
      `${formatBytes(wanted * MIB + youngBytes + besideBytes)} with this heap; with less memory ` +
      'the kernel kills it.'
  }
}

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {number} megabytes
 * @param {number} youngBytes
 * @returns {Fix}
 */
function raiseLimit (finding, target, megabytes, youngBytes) {
  const grows = semiSpaceFlag(finding, target) ? ', and let semi-spaces grow' : ''
  const addedBytes = Math.max(0, megabytes * MIB + youngBytes - finding.heapLimitBytes)
  return {
    title: `Raise the heap limit to ${megabytes} MiB${grows}`,
    change: target.threadId > 0
      ? {
          code: `new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: ${megabytes} } }): ` +
            'a worker keeps the heap limits of its start.'
        }
      : limitChange(finding, target, megabytes),
    predicted: predictEffect(finding, megabytes),
    risk: `RSS may rise by up to ${formatBytes(addedBytes)}${describeFit(finding)}. If the live ` +
      'heap grows, the change only delays the end.'
  }
}

/**
 * The fix also enlarges small semi-spaces, which would be the next bottleneck.
 * @param {Finding} finding
 * @param {Hello} target
 */
const semiSpaceFlag = ({ semiSpaceBytes }, { threadId }) =>
  semiSpaceBytes < ENOUGH_SEMI_SPACE && threadId === 0 &&
  { '--max-semi-space-size': ENOUGH_SEMI_SPACE / MIB }

/**
 * @param {Finding} finding
 * @param {Hello} target
 * @param {number} megabytes
 */
const limitChange = (finding, target, megabytes) =>
  nodeFlagChange(target, {
    '--max-old-space-size': megabytes, ...semiSpaceFlag(finding, target)
  })

/** @param {Finding} finding */
function describeFit ({ containerLimitBytes, shareBytes, processes }) {
  if (containerLimitBytes === null || shareBytes === null) return ''
  const limit = formatBytes(containerLimitBytes)
  return processes > 1
    ? `; it was computed to fit ${formatBytes(shareBytes)}, its share of the ${limit} that ` +
      `${processes} processes use together`
    : `; it was computed to fit the container's ${limit}`
}

/**
 * Limit of the old generation, which --max-old-space-size sets.
 * @param {Finding} finding
 */
const oldLimitBytes = ({ heapLimitBytes, semiSpaceBytes }) =>
  oldGenerationLimit(heapLimitBytes, { bytes: semiSpaceBytes })

/**
 * Predicts the effect of a new heap limit: on pauses, or on the filled share of a quiet heap. V8
 * runs a major GC each time the headroom above the live heap is used up, so twice the headroom
 * halves the major GCs.
 * @param {Finding} finding
 * @param {number} megabytes new limit of the old generation
 * @returns {Fix['predicted']} the share of the limit for a quiet heap; empty for a heap that fills,
 *   whose GCs cost little yet
 */
function predictEffect (finding, megabytes) {
  const { course, gcPauseRatio, costlyMajorsPerSecond, liveBytes: live, shareOfLimit } = finding
  if (course === 'fills') return []
  if (course === 'quiet') {
    return [prediction('liveHeapPeakShareRatio', shareOfLimit, live / (megabytes * MIB))]
  }
  const limit = oldLimitBytes(finding)
  const room = Math.max(limit - live, LEAST_ROOM_SHARE * limit)
  const share = Math.min(1, room / Math.max(1, megabytes * MIB - live))
  const pauses = prediction('recentGcPauseRatio', gcPauseRatio, gcPauseRatio * share)
  return costlyMajorsPerSecond === null
    ? [pauses]
    : [
        pauses,
        prediction(
          'ordinaryMajorsPerSecond', costlyMajorsPerSecond, costlyMajorsPerSecond * share
        )
      ]
}

module.exports = { ENOUGH_SEMI_SPACE, giveRoom }

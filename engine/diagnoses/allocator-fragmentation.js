'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { ROOM_LIMITS, findMemoryLimit, hasRoom } = require('./severity')
const { formatBytes, formatRatio } = require('../text/format')
const { trimCommand } = require('../fixes/command')
const { MOVED_SHARE } = require('../memory/retained')
const { envChange, jemallocChange } = require('../fixes/malloc')

/**
 * Share of retained memory that jemalloc returned in measurements. It is used if no scan of the
 * memory map exists from which to compute the saving.
 */
const JEMALLOC_RECOVERED = 0.85
/** Least share of retained memory that jemalloc must return to be listed. */
const LEAST_RECOVERED = 0.1

/** Time after which malloc's memory, or its own answer, is known for long enough. */
const SOON_SECONDS = 60

module.exports = defineDiagnosis({
  id: 'allocator-fragmentation',
  title: 'malloc keeps memory that the app has freed',
  severity: 'warning',
  scope: 'process',
  requires: ['rssBytes', 'nativeBytes', 'allocatorSlackBytes'],
  uses: [
    'allocatorSlackNowBytes',
    'allocatorSlackFallBytes',
    'allocatorAsked',
    'allocatorAnswerDue',
    'allocatorTrimmableBytes',
    'jemallocSavingBytes',
    'bufferChurnBytes',
    'nativeReusedBytes',
    'mallocArenaShareRatio',
    'nativeTrend',
    'containerLimitBytes',
    'containerShareBytes',
    'memoryRunwayBytes'
  ],
  limits: {
    // Less retained memory than this is not worth another allocator.
    retainedBytes: 64 * 2 ** 20,
    retainedShareRatio: 0.2,
    ...ROOM_LIMITS,
    // malloc retains tens of MiB in most healthy apps that handle Buffers. Far from the memory
    // limit, a finding needs more retained bytes and a larger share.
    roomyRetainedBytes: 128 * 2 ** 20,
    roomyShareRatio: 0.4,
    // Memory counts as freed only if Buffers come and go in at least this share of it. This does
    // not apply to memory that malloc itself reported as free.
    movedShareRatio: MOVED_SHARE,
    // Without malloc's own report, a finding is certain only if this share of it comes and goes.
    // The lab's apps measured 0.5 to 1.5. A healthy WebSocket server measured 0.21: zlib used the
    // rest for its compressed connections.
    certainMovedShareRatio: 0.4,
    // Constant memory of this size may be in use or retained, because threads of an addon can free
    // and allocate memory between two readings. Only malloc can tell. With sharp, 267 MiB stayed
    // constant, and jemalloc returned 171 MiB of them.
    openBytes: 100 * 2 ** 20,
    openShareRatio: 0.4,
    // Native memory that rises this steadily may be a leak: the finding stays suspected until the
    // rise stops.
    growthScore: 3,
    growthFit: 0.8,
    growthShareRatio: 0.2,
    lateGrowthRatio: 0.5,
    // The app uses most of the retained memory again if this share of it is left. It comes and goes
    // if it fell by this share before: the median of a minute then never shows all of it.
    reusedShareRatio: 0.5,
    // Threshold that the evidence shows: above it, the arenas of threads retain more than [heap]
    // does.
    arenaShareRatio: 0.5
  },
  explains: [],
  // V8 builds a heap snapshot in memory of malloc, several times the size of the heap, and frees
  // this memory after writing. A profile of deep call stacks takes tens of megabytes.
  leftBy: ['heap_snapshot', 'large_profile'],
  runbook: 'MemwatchAllocatorFragmentation',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, target) {
    const dismissed = ruleOutAllocator(target) ??
      ruleOutLittle(signals, limits) ??
      ruleOutInUse(signals, limits)
    if (dismissed) return dismissed
    const { allocatorSlackBytes: retained, rssBytes, containerLimitBytes: limit } = signals
    const about = signals.allocatorAsked === 1 ? '' : 'about '
    const closer = limit === null
      ? ''
      : ` and bring the ${formatBytes(limit)} limit of the container closer`
    const now = signals.allocatorSlackNowBytes ?? retained
    const isReused =
      signals.allocatorAnswerDue !== 1 && now < limits.reusedShareRatio * retained
    const mayBeInUse = signals.allocatorAsked !== 1 &&
      findMoved(signals) < limits.certainMovedShareRatio * retained
    const isOpen =
      risesInLine(signals, limits) || signals.allocatorAnswerDue === 1 || mayBeInUse
    return {
      state: isOpen ? 'suspected' : 'confirmed',
      // While malloc's answer is out of date, or less memory comes and goes than before, this
      // judgement does not withdraw an earlier finding.
      keeps: signals.allocatorAnswerDue === 1 || mayBeInUse,
      severity: hasRoom(signals, signals.allocatorSlackBytes, limits) ? 'info' : 'warning',
      summary: `glibc malloc keeps ${mayBeInUse ? 'up to ' : about}${formatBytes(retained)} that ` +
        `the app has freed${mayBeInUse ? ', or native code uses a part of it' : ''}` +
        // RSS may have fallen since the median.
        (retained <= rssBytes ? `: ${formatRatio(retained / rssBytes)} of RSS` : '') + (isReused
        ? ', in the median of the last minute. At the moment the app uses all but ' +
          `${formatBytes(now)}.`
        : '.'),
      finding: {
        retainedBytes: retained,
        rssBytes,
        jemallocSavingBytes: signals.jemallocSavingBytes,
        arenaShareRatio: signals.mallocArenaShareRatio ?? 0,
        trimmableBytes: signals.allocatorTrimmableBytes ?? 0
      },
      evidence: showEvidence(signals, limits, mayBeInUse),
      impact: `${mayBeInUse ? 'Up to ' : ''}${formatBytes(isReused ? now : retained)} of RSS are ` +
        `unused${closer}.`
    }
  },

  fix (
    { retainedBytes: retained, rssBytes, jemallocSavingBytes, arenaShareRatio, trimmableBytes },
    target,
    limits
  ) {
    /** @param {number} saved bytes */
    const predicted = saved => [prediction('rssBytes', rssBytes, rssBytes - saved)]
    const jemalloc = jemallocSavingBytes ?? JEMALLOC_RECOVERED * retained
    // If jemalloc returns next to nothing, no other setting of malloc does.
    const lasting = jemalloc >= LEAST_RECOVERED * retained
      ? [
          {
            title: 'Use jemalloc',
            change: jemallocChange(target),
            predicted: predicted(jemalloc),
            risk: 'This replaces the allocator of the process: try it on one replica first. In ' +
              'Alpine and distroless images, copy the library into the image.'
          },
          ...settingsOf(target, arenaShareRatio >= limits.arenaShareRatio)
        ]
      : []
    const change = trimChange(target)
    if (!change) return lasting
    return [
      ...lasting,
      {
        title: 'First aid, without a restart: malloc_trim',
        change,
        predicted: predicted(trimmableBytes),
        risk: 'It blocks the app for about 0.15 ms for each MiB. Under the same load, malloc ' +
          'soon retains memory again.'
      }
    ]
  }
})

/**
 * Settings of glibc. They saved between nothing and as much as jemalloc in measurements, and
 * nothing that memwatch can see tells how much, so no saving is predicted.
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {boolean} isInArenas true if thread arenas hold most of the retained memory
 * @returns {import('./define-diagnosis').Fix[]}
 */
function settingsOf ({ mallocEnv }, isInArenas) {
  const fixes = []
  if (mallocEnv.MALLOC_ARENA_MAX === undefined && isInArenas) {
    fixes.push({
      title: 'Without a new library: try fewer arenas',
      change: envChange({ MALLOC_ARENA_MAX: '2' }),
      predicted: [],
      risk: 'Threads of the pool share two arenas, with some lock contention. Some apps gain ' +
        'nothing: compare RSS under the same load. Memory in [heap] does not change.'
    })
  }
  if (mallocEnv.MALLOC_MMAP_THRESHOLD_ === undefined) {
    fixes.push({
      title: 'Without a new library, if the app uses large Buffers: separate memory for them',
      change: envChange({ MALLOC_MMAP_THRESHOLD_: '32768' }),
      predicted: [],
      risk: 'Each allocation of 32 KiB or more becomes a system call, which costs some CPU in ' +
        'apps with many such Buffers. Memory of smaller ones does not change: if all are ' +
        'smaller, the setting has no effect.'
    })
  }
  return fixes
}

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'retainedBytes' | 'rssBytes' | 'arenaShareRatio' | 'trimmableBytes', number> &
 *   { jemallocSavingBytes: number | null }} Finding
 */
/** @typedef {(signals: Signals, limits: Limits) => import('./define-diagnosis').Dismissal | null} Question */

/**
 * Can the retained memory of this allocator be measured?
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 */
function ruleOutAllocator ({ allocator }) {
  if (allocator === 'glibc') return null
  if (['jemalloc', 'mimalloc', 'tcmalloc'].includes(allocator)) {
    return ok(`malloc is ${allocator} already, not glibc's`)
  }
  const name = allocator === 'unknown' ? 'this' : allocator
  return unknown(`memory that ${name}'s malloc retains is not visible from ` +
    'outside', { openUntil: 'never' })
}

/** Is the retained memory worth a change? @type {Question} */
function ruleOutLittle (signals, limits) {
  const { allocatorSlackBytes: retained, rssBytes } = signals
  const isLittle = (/** @type {number} */ bytes) =>
    bytes < limits.retainedBytes || bytes / rssBytes < limits.retainedShareRatio
  const isWorth = (/** @type {number} */ bytes) => !isLittle(bytes) &&
    ((bytes >= limits.roomyRetainedBytes && bytes / rssBytes >= limits.roomyShareRatio) ||
      !hasRoom(signals, bytes, limits))
  if (isWorth(retained)) return null
  const now = signals.allocatorSlackNowBytes ?? retained
  const fall = signals.allocatorSlackFallBytes ?? 0
  if (isWorth(now) && fall < limits.reusedShareRatio * now) {
    return unknown(`${formatBytes(now)} of malloc's memory are free or used by native code, for ` +
      'less than a minute: too short to judge', { waitSeconds: SOON_SECONDS })
  }
  if (isLittle(retained)) {
    return ok(`malloc retains at most ${formatBytes(retained)} of freed memory ` +
      `(${formatRatio(retained / rssBytes)} of RSS), in the median of the last minute`)
  }
  const limit = findMemoryLimit(signals)
  const most = signals.allocatorAsked === 1 ? '' : 'at most '
  return ok(`malloc retains ${most}${formatBytes(retained)} of freed memory, little compared with ` +
    `the limit of ${formatBytes(limit)}, of which RSS fills ${formatRatio(rssBytes / limit)}`)
}

/**
 * Is the memory in use? It counts as freed if Buffers come and go in it, or if malloc reports it as
 * free.
 * @type {Question}
 */
function ruleOutInUse (signals, limits) {
  const { allocatorSlackBytes: retained, rssBytes, nativeBytes } = signals
  const moves = findMoved(signals) >= limits.movedShareRatio * retained
  if (signals.allocatorAsked === 1 || moves) return null
  const outside = `${formatBytes(nativeBytes)} outside the heap`
  if (retained >= limits.openBytes && retained / rssBytes >= limits.openShareRatio) {
    const doubt = `${outside} hardly change: in use by native code, or freed and retained`
    return signals.allocatorAnswerDue === 1
      ? unknown(`${doubt}; memwatch will query malloc`, { waitSeconds: SOON_SECONDS })
      : unknown(
        `${doubt}. malloc's statistics decide: start the app with MEMWATCH_ALLOCATOR_ACCESS=read`,
        { openUntil: 'setting' }
      )
  }
  return ok(`${outside} are constant, and Buffers hardly change: the memory is in use, not freed`)
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const risesInLine = ({ nativeTrend, nativeBytes }, limits) =>
  nativeTrend !== null &&
  nativeTrend.score >= limits.growthScore &&
  nativeTrend.fit >= limits.growthFit &&
  (nativeTrend.lateRatio ?? 0) >= limits.lateGrowthRatio &&
  nativeTrend.rise >= limits.growthShareRatio * nativeBytes

/** Bytes of memory outside the heap that were freed and used again. @param {Signals} signals */
const findMoved = ({ bufferChurnBytes, nativeReusedBytes }) =>
  Math.max(bufferChurnBytes ?? 0, nativeReusedBytes ?? 0)

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {boolean} mayBeInUse
 */
function showEvidence (signals, limits, mayBeInUse) {
  const { allocatorSlackBytes: retained, rssBytes, nativeTrend: trend } = signals
  const inArenas = signals.mallocArenaShareRatio ?? 0
  const moved = findMoved(signals)
  const leastMoved = limits.movedShareRatio * retained
  const isChurn = moved === (signals.bufferChurnBytes ?? 0)
  const needed = mayBeInUse
    ? `, and ${formatBytes(limits.certainMovedShareRatio * retained)} to be certain`
    : ''
  return listEvidence(
    evidence('allocatorSlackBytes', retained, limits.retainedBytes, (value, limit) =>
      signals.allocatorAsked === 1
        ? `malloc itself counts ${value} of its resident memory as free (threshold ${limit}).`
        : (signals.allocatorAnswerDue === 1 ? 'memwatch will query malloc. ' : '') +
          `${mayBeInUse ? 'Up to' : 'About'} ${value} of malloc's resident memory are not in use ` +
          `(threshold ${limit}).`),
    evidence('rssBytes', rssBytes, retained / limits.retainedShareRatio, value =>
      `RSS is ${value}, of which malloc keeps ${formatRatio(retained / rssBytes)}.`),
    evidence('mallocArenaShareRatio', inArenas, limits.arenaShareRatio, value =>
      `${formatRatio(1 - inArenas)} of the retained memory is in [heap], the main arena, and ` +
      `${value} in the arenas of threads.`),
    moved > (signals.allocatorAsked === 1 ? leastMoved : 0) && evidence(
      isChurn ? 'bufferChurnBytes' : 'nativeReusedBytes', moved, leastMoved,
      (value, limit) => `Up to ${value} of native memory and Buffers were freed (threshold ` +
        `${limit}${needed}), but RSS did not fall.`),
    trend && evidence(
      'nativeRiseBytes', trend.rise, limits.growthShareRatio * signals.nativeBytes,
      (value, limit) => risesInLine(signals, limits)
        ? `Native memory still rises in a straight line, by ${value}: until this stops, a leak is as ` +
          'likely.'
        : notALine(trend.rise, value, limit))
  )
}

/**
 * @param {number} riseBytes
 * @param {string} rise
 * @param {string} limit
 */
function notALine (riseBytes, rise, limit) {
  if (riseBytes <= 0) return 'Native memory does not rise: no leak.'
  return `Native memory rose by ${rise} (threshold ${limit}), but not in a continuing line: no ` +
    'leak.'
}

/**
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @returns {import('./define-diagnosis').Change | null} null if malloc_trim is unavailable
 */
function trimChange ({ name, commands, allowedFlags }) {
  if (commands?.includes('trim')) return { code: trimCommand({ name }) }
  // Node 26 added node:ffi. The flag in the list of allowed flags shows that this Node has it.
  if (!allowedFlags.some(flag => flag.endsWith('experimental-ffi'))) return null
  return {
    code: "const { functions } = require('node:ffi').dlopen(null, { malloc_trim: { arguments: " +
      "['u64'], return: 'i32' } }), then functions.malloc_trim(0n) when the app is idle. Or " +
        'start the app with MEMWATCH_ALLOCATOR_ACCESS=trim, and run memwatch trim. node:ffi is ' +
          'experimental.'
  }
}

'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { NEARLY_ALL, prediction, sayCpuShare, wallAndCpu } = require('./evidence')
const {
  hasRoom, holdingSize, ruleOut, ruleOutCauses, stillWastesCpuTime, wastesCpuTime, weighCauses
} = require('./semi-space-starvation-causes')
const { showEvidence } = require('./semi-space-starvation-evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { comfortableOldBytes, fittingOldBytes, marksAlways } = require('../v8/fitting-sizes')
const { newSpaceBytes, youngGenerationBytes } = require('../v8/heap-sizing')
const { predictYoungGeneration, SEMI_SPACE_CHOICES } = require('../v8/young-generation')
const { nodeFlagChange } = require('../fixes/node-flag')

const MIB = 2 ** 20

module.exports = defineDiagnosis({
  id: 'semi-space-starvation',
  title: 'The new space is too small for the allocation rate',
  severity: 'warning',
  scope: 'isolate',
  requires: [
    'semiSpaceMaxBytes',
    'semiSpaceCapacityBytes',
    'recentGcs',
    'scavengesPerSecond',
    'scavengePauseRatio',
    'ordinaryMajorsPerSecond',
    'ordinaryMajorPauseRatio',
    'heapSizeLimitBytes',
    'gcWindowSeconds',
    'scavengesPerCpuSecond',
    'scavengeCpuRatio',
    'ordinaryMajorCpuRatio'
  ],
  uses: [
    'lifeCpuSeconds',
    'gcPauseRatio',
    'promotedPerMajorBytes',
    'keptPerMajorBytes',
    'liveHeapBytes',
    'liveHeapShareRatio',
    'rssBytes',
    'containerShareBytes',
    'containerHeaps',
    'besideHeapBytes',
    'besideHeapPeakBytes',
    'cpuTimeRatio',
    'cpuThrottledRatio',
    'externalMajorsPerSecond',
    'externalWaitingBytes',
    'eventLoopUtilizationRatio',
    'ordinaryGcOfCpuRatio',
    'oldSpaceSwingBytes'
  ],
  limits: {
    // A semi-space of this size or more is not small: with enough memory V8 chooses 16 MiB or more
    // on every Node.js from 18 on.
    semiSpaceMaxBytes: 16 * MIB,
    // Size to try where 16 MiB are too few:
    // docs/decisions/0090-a-large-new-space-may-be-too-small.md.
    semiSpaceLargestBytes: 64 * MIB,
    // A semi-space is recommended that holds this multiple of the live heap, if one can: most of a
    // small live heap may be data in use for a short time. With 25 MiB live, 32 MiB saved 9 % of
    // the GC time, and 64 MiB 62 %.
    holdsLiveRatio: 1.5,
    // Share of its maximum that a semi-space must have reached: below it the semi-space may still
    // grow.
    grownShareRatio: 0.9,
    // Fewer GCs in the window give no reliable rate.
    recentGcs: 100,
    // Least length of the window. Every app starves for a few seconds while it loads and warms up.
    gcWindowSeconds: 15,
    // If only scavenges are frequent, the process must be this old in CPU-seconds: with a tenth of
    // a core the start phase takes ten times as long.
    lifeCpuSeconds: 15,
    // Share of CPU time in scavenges and ordinary major GCs that is worth a change. CPU time is the
    // basis, because the pauses of a throttled thread last several times longer by the clock.
    pauseRatio: 0.12,
    // From this busy share on, work waits for the loop. One server measured 22 % of the time in GC
    // after its fix, where 9 % were predicted.
    neverIdleRatio: 0.95,
    // From this share of throttled periods of the CPU quota on, work waits for a CPU as well.
    throttledRatio: 0.25,
    suspectedPauseRatio: 0.06,
    // In an app that waits most of the time, less is enough if it is a large part of the CPU time
    // that the process uses: docs/decisions/0115-gc-is-weighed-against-used-cpu-time.md.
    wastedPauseRatio: 0.06,
    wastedCpuRatio: 0.3,
    // The same for still shorter pauses, if GCs are frequent.
    frequentPauseRatio: 0.02,
    frequentCpuRatio: 0.4,
    frequentScavengesPerCpuSecond: 80,
    // A finding stands down to this share of CPU time, and to this part of the limits above: a load
    // near them changes no state.
    keptPauseRatio: 0.09,
    keptShareOfLimits: 0.7,
    // A semi-space of 16 MiB is suspected from this share of CPU time on, one of 32 MiB from twice
    // the share. The suspicion ends below the second number, a part of that share. In two apps with
    // 0.06 to 0.08, 64 MiB saved half and two thirds of the GC time. Of 200 recordings of other
    // apps with 16 MiB only one reached 0.05, a starving app repaired with this size.
    largePauseRatio: 0.05,
    keptLargeShareRatio: 0.8,
    // An app with a large new space is not healthy either if GC takes this share of CPU time: its
    // objects outlive a new space of any size. An app with 40 concurrent requests of 1 MB measured
    // 0.28 to 0.38.
    unexplainedRatio: 0.25,
    // Least share of CPU time in ordinary major GCs that shows that short-lived objects are
    // promoted and fill the old space. The limit is a share, not a rate, because a slow machine
    // runs fewer and longer GCs. Starving apps measured 0.048–0.11, healthy ones with the same
    // small semi-space 0.0008–0.013.
    ordinaryMajorRatio: 0.03,
    // A suspicion ends below this share. A starving app measured 0.028 to 0.03.
    keptOrdinaryMajorRatio: 0.02,
    // Rate of major GCs that replaces the share if the thread's wait for a CPU is unknown: other
    // processes may then lengthen the pauses. Healthy apps ran 0–2 major GCs a second, starving
    // apps 8–14, and 3 at a low load.
    ordinaryMajorsPerSecond: 2.5,
    // If a larger share of the bytes promoted between two major GCs survives, the live heap grows,
    // and its growth causes the major GCs. Starving apps keep 0.02 of these bytes, and a leak of 2
    // MiB/s keeps 0.3.
    keptShareRatio: 0.15,
    // V8 starts no major GC for less than 8 MiB of garbage. Starving apps measured 8 to 30 MiB
    // promoted between two major GCs. Two semi-spaces of 4 MiB are 8 MiB, less what the edges of a
    // window cut off. If less is promoted, Buffers fill the rest (V8 12.4 does not report that they
    // forced a GC; apps with such GCs measured 1.4 MiB), or V8 allocates in the old space.
    promotedPerMajorBytes: 7.8 * MIB,
    // V8 lets the old space grow by at least this share of its live objects before the next major
    // GC (kMinGrowingFactor).
    growsLeastRatio: 0.1,
    // V8 allocates in the old space if this rises by so many times what scavenges can promote, at
    // so many major GCs a second. A program whose objects V8 pretenures had 6 times and 1.2.
    // Caches whose entries expire measured 5 times and 0.2, a batch program 2 times and 1.1.
    directRiseRatio: 3,
    directMajorsPerSecond: 0.8,
    // An undecided verdict about such major GCs ends after half of this time without them, so a
    // load near the limits seldom changes it.
    pretenuringSeconds: 60,
    // If short-lived objects cause no major GCs, scavenges alone must reach this rate per
    // CPU-second.
    scavengesPerCpuSecond: 50,
    // If the live heap fills more than this share of its limit, major GCs run because the old
    // generation lacks room, which is another problem.
    liveHeapShareRatio: 0.7,
    // A larger new space must fit the container's free memory, with a tenth of it to spare.
    spareShareRatio: 0.9
  },
  explains: ['cpu-throttling'],
  runbook: 'MemwatchSemiSpaceStarvation',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, target) {
    const dismissed = ruleOut(signals, limits)
    if (dismissed) return dismissed
    const causes = weighCauses(signals, limits)
    const harmless = ruleOutCauses(signals, limits, causes)
    if (harmless) return harmless
    const { semiSpaceMaxBytes, scavengesPerSecond, rssBytes } = signals
    const { scavengePauseRatio, ordinaryMajorPauseRatio, gcPauseRatio } = signals
    const { pretenures, outlive, wallRatio, cpuRatio } = causes
    const isSettled =
      signals.gcWindowSeconds >= limits.gcWindowSeconds &&
      (causes.promotesTooEarly || (signals.lifeCpuSeconds ?? 0) >= limits.lifeCpuSeconds)
    const arePausesLong = cpuRatio >= limits.pauseRatio
    const isCostly = arePausesLong || wastesCpuTime(signals, limits, causes)
    // Requests wait for long pauses, and for a CPU limit that GC uses up.
    const isUrgent = arePausesLong || ((isCostly || causes.isDirect) &&
      (signals.cpuThrottledRatio ?? 0) >= limits.throttledRatio)
    const isConfirmed = isCostly && isSettled && !pretenures && !outlive && !causes.isLarge
    /** @param {Verbs} verbs */
    const tell = verbs => `${tellCause(signals, limits, causes, verbs)} ` +
      ((isConfirmed && !arePausesLong) || causes.isDirect
        ? `${sayGc(signals)}, and its pauses ${verbs.take} ${formatRatio(wallRatio)} of wall time`
        : wallAndCpu(signals, wallRatio, cpuRatio))
    const now = tell(PRESENT)
    return {
      state: isConfirmed ? 'confirmed' : 'suspected',
      severity: isUrgent ? 'warning' : 'info',
      keeps: isSettled &&
        (cpuRatio >= limits.keptPauseRatio || stillWastesCpuTime(signals, limits, causes)),
      // A confirmed finding is told in the past once its evidence is older.
      standing: isConfirmed ? tell(PAST) : now,
      summary: `${now}.`,
      finding: {
        pretenures,
        outlive,
        isNeverIdle: (signals.eventLoopUtilizationRatio ?? 0) >= limits.neverIdleRatio,
        majorsPerSecond: signals.ordinaryMajorsPerSecond,
        semiSpaceBytes: semiSpaceMaxBytes,
        scavengesPerSecond,
        scavengePauseRatio,
        ordinaryMajorPauseRatio,
        gcPauseRatio: gcPauseRatio ?? wallRatio,
        gcOfCpuRatio: isCostly && !arePausesLong ? signals.ordinaryGcOfCpuRatio : null,
        rssBytes,
        shareBytes: signals.containerShareBytes,
        heapLimitBytes: signals.heapSizeLimitBytes,
        heaps: signals.containerHeaps ?? 1,
        liveBytes: signals.liveHeapBytes,
        heldBytes: causes.heldBytes,
        besideBytes: Math.max(signals.besideHeapBytes ?? 0, signals.besideHeapPeakBytes ?? 0)
      },
      evidence: showEvidence(signals, limits, target, causes),
      impact: arePausesLong || signals.ordinaryGcOfCpuRatio === null
        ? `Requests wait during GC pauses, which take ${formatRatio(wallRatio)} of wall time. GC ` +
          'threads use about as much CPU time as the pauses.'
        : `GC takes ${sayCpuShare(signals.ordinaryGcOfCpuRatio)}.`
    }
  },

  fix (finding, target, limits) {
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
})

/**
 * Predicts the share of time in GC; of CPU time if that is what GC wastes. Pauses may then take as
 * long as before: one server measured 8.7 % before and 17 % after, and saved 44 % of its CPU time.
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
  const estimate = Math.min(gcOfCpuRatio, NEARLY_ALL)
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

/** @typedef {Record<'force' | 'promote' | 'takes' | 'take' | 'copy', string>} Verbs of one tense */

/** @type {Verbs} */
const PRESENT = Object.freeze({
  force: 'force', promote: 'promote', takes: 'takes', take: 'take', copy: 'copy'
})
/** @type {Verbs} */
const PAST = Object.freeze({
  force: 'forced', promote: 'promoted', takes: 'took', take: 'took', copy: 'copied'
})

/**
 * Says what scavenges and major GCs do, up to the share of time that they take.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {ReturnType<typeof weighCauses>} causes
 * @param {Verbs} verbs
 */
function tellCause (signals, limits, causes, { force, promote, takes, copy }) {
  const size = formatBytes(signals.semiSpaceMaxBytes)
  const sizes = `Semi-spaces of at most ${size}`
  const scavenges = `${formatNumber(signals.scavengesPerSecond)} scavenges a second`
  const majors = `${formatNumber(signals.ordinaryMajorsPerSecond)} major GCs a second`
  if (causes.isLarge) {
    return `${scavenges} ${copy} objects in use, although semi-spaces may grow to ${size}: GC of ` +
      `young objects ${takes}`
  }
  if (causes.pretenures) {
    return `${sizes} hold so little that V8 probably allocates short-lived objects in the old ` +
      `space, and ${majors} free them: GC ${takes}`
  }
  const promotes = causes.promotesTooEarly || (causes.promotesGarbage &&
    wastesCpuTime(signals, limits, causes))
  return `${sizes} ${force} ${scavenges}` +
    (causes.outlive ? `, and ${majors} free objects that outlive them` : '') +
    `${promotes ? ` and ${promote} garbage` : ''}: GC ${takes}`
}

/** @param {{ ordinaryGcOfCpuRatio: number | null }} signals */
const sayGc = ({ ordinaryGcOfCpuRatio }) =>
  `${sayCpuShare(ordinaryGcOfCpuRatio ?? 0)} with the work of other threads`

/** @typedef {import('../v8/young-generation').YoungGeneration} YoungGeneration */

/**
 * @param {YoungGeneration} choice
 * @param {Finding} finding
 * @param {{ holdsLiveRatio: number, semiSpaceLargestBytes: number }} limits
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

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'semiSpaceBytes' | 'majorsPerSecond' | 'scavengesPerSecond' |
 *   'scavengePauseRatio' | 'ordinaryMajorPauseRatio' | 'gcPauseRatio' | 'heapLimitBytes' |
 *   'heaps' | 'besideBytes' | 'heldBytes', number> &
 *   Record<'gcOfCpuRatio' | 'rssBytes' | 'shareBytes' | 'liveBytes', number | null> &
 *   { pretenures: boolean, outlive: boolean, isNeverIdle: boolean }} Finding pretenures: V8
 *   allocates in the old space; gcOfCpuRatio: share of CPU time in GC, if pauses are no reason for
 *   the finding; outlive: objects may outlive a larger new space, too; heaps: heaps
 *   in the container; besideBytes: memory outside the heap at the busiest moment of the last day;
 *   heldBytes: size of the objects that a larger new space must hold
 */

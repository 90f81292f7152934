'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { sayCpuShare, wallAndCpu } = require('./evidence')
const {
  ruleOut, ruleOutCauses, stillWastesCpuTime, wastesCpuTime, weighCauses
} = require('./semi-space-starvation-causes')
const { showEvidence } = require('./semi-space-starvation-evidence')
const { enlargeNewSpace } = require('./semi-space-starvation-fix')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')

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

  fix: (finding, target, limits) => enlargeNewSpace(finding, target, limits)
})

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

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {import('./semi-space-starvation-fix').Finding} Finding */

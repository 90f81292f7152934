'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { cpuTimeEvidence, evidence, prediction, wallAndCpu } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const {
  semiSpaceMax,
  chosenSizes,
  newSpaceBytes,
  youngGenerationBytes
} = require('../v8/heap-sizing')
const { predictYoungGeneration, SEMI_SPACE_CHOICES } = require('../v8/young-generation')
const { nodeFlagChange } = require('../fixes/node-flag')

const MIB = 2 ** 20
/** V8 10.2 of Node.js 18 is told of no limit on cgroup v2; V8 11 of Node.js 20 is. */
const V8_OF_NODE_18 = /** @type {const} */ ([10, 2])
const V8_THAT_SEES_CGROUP2 = 11

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
    'ordinaryMajorCpuRatio',
    'lifeCpuSeconds'
  ],
  uses: [
    'gcPauseRatio',
    'promotedPerMajorBytes',
    'keptPerMajorBytes',
    'liveHeapBytes',
    'liveHeapShareRatio',
    'rssBytes',
    'containerShareBytes',
    'cpuTimeRatio',
    'cpuThrottledRatio',
    'externalMajorsPerSecond'
  ],
  limits: {
    // V8's own choice with room to spare is 16 MiB or more on every Node from 18 on: a larger one
    // is not small.
    semiSpaceMaxBytes: 16 * MIB,
    // A semi-space that stands lower may still grow, and heals itself.
    grownShareRatio: 0.9,
    // Fewer GCs than this in the window are no rate.
    recentGcs: 100,
    // Every app starves for a few seconds while it loads and warms up.
    gcWindowSeconds: 15,
    // Where only scavenges are many, that start must be over in CPU-seconds: a tenth of a core
    // takes ten times as long.
    lifeCpuSeconds: 15,
    // What scavenges and ordinary majors may take of the CPU time before it is worth a change. Of
    // CPU time, as a pause of a throttled thread lasts several times longer by the clock.
    pauseRatio: 0.12,
    suspectedPauseRatio: 0.06,
    // What ordinary majors take of the CPU time where old space fills with what died young but was
    // promoted. A share, as a slow machine runs fewer and longer ones. Starving apps measured
    // 0.048–0.11, healthy ones with the same small semi-space 0.0008–0.013.
    ordinaryMajorRatio: 0.03,
    // Where nobody tells how long the thread waited for a CPU, a share of wall time may be its
    // neighbours' doing: then so many majors a second count instead. Healthy apps ran 0–2, starving
    // ones 8–14.
    ordinaryMajorsPerSecond: 2.5,
    // Of what scavenges can promote between two majors, so much stays where the live heap grows:
    // then majors come for it. Starving apps keep 0.02 of it, a leak of 2 MiB/s 0.3.
    keptShareRatio: 0.15,
    // V8 starts no major GC for less promoted garbage. Starving apps measured 20 MiB; where large
    // Buffers force the GCs, which V8 12.4 does not say, 1.4 MiB.
    promotedPerMajorBytes: 8 * MIB,
    // Without such majors, scavenges alone must come this often in a CPU-second.
    scavengesPerCpuSecond: 50,
    // Near its limit the old generation runs majors for want of room of its own; that is another
    // problem.
    liveHeapShareRatio: 0.7,
    // A larger new space must fit what the container has left, with a tenth of it to spare.
    spareShareRatio: 0.9
  },
  explains: [],
  runbook: 'MemwatchSemiSpaceStarvation',

  judge (signals, limits, target) {
    const {
      semiSpaceMaxBytes,
      semiSpaceCapacityBytes,
      scavengesPerSecond,
      ordinaryMajorsPerSecond
    } = signals
    const wallRatio = signals.scavengePauseRatio + signals.ordinaryMajorPauseRatio
    const cpuRatio = signals.scavengeCpuRatio + signals.ordinaryMajorCpuRatio
    const share = wallAndCpu(signals, wallRatio, cpuRatio)
    if (semiSpaceMaxBytes >= limits.semiSpaceMaxBytes) {
      return {
        state: 'ok',
        summary: `a semi-space may grow to ${formatBytes(semiSpaceMaxBytes)}, which is not small`
      }
    }
    if (semiSpaceCapacityBytes < limits.grownShareRatio * semiSpaceMaxBytes) {
      return {
        state: 'ok',
        summary: `the semi-space stands at ${formatBytes(semiSpaceCapacityBytes)} and may still ` +
          `grow to ${formatBytes(semiSpaceMaxBytes)}`
      }
    }
    if (signals.recentGcs < limits.recentGcs) {
      return {
        state: 'unknown',
        summary: `only ${formatNumber(signals.recentGcs)} GCs lately: too few to judge a rate`
      }
    }
    if ((signals.liveHeapShareRatio ?? 0) > limits.liveHeapShareRatio) {
      return {
        state: 'ok',
        summary: `the live heap fills ${formatRatio(signals.liveHeapShareRatio ?? 0)} of its ` +
          'limit: majors come for want of room in the old space'
      }
    }
    const promoted = signals.promotedPerMajorBytes ?? Infinity
    const isPromotion = promoted >= limits.promotedPerMajorBytes
    const isKept = (signals.keptPerMajorBytes ?? 0) >= limits.keptShareRatio * promoted
    // V8 does not say which majors its marking steps prepare: they count for those that are more.
    const areOrdinary =
      ordinaryMajorsPerSecond > 0 &&
      ordinaryMajorsPerSecond >= (signals.externalMajorsPerSecond ?? 0)
    const areMany =
      signals.cpuTimeRatio === null
        ? ordinaryMajorsPerSecond >= limits.ordinaryMajorsPerSecond
        : signals.ordinaryMajorCpuRatio >= limits.ordinaryMajorRatio
    const promotesTooEarly = isPromotion && !isKept && areOrdinary && areMany
    const scavengesTooOften = signals.scavengesPerCpuSecond >= limits.scavengesPerCpuSecond
    if (!isPromotion && !scavengesTooOften) {
      return {
        state: 'ok',
        summary: `scavenges promote ${formatBytes(signals.promotedPerMajorBytes ?? 0)} at most ` +
          `between two major GCs (${formatNumber(ordinaryMajorsPerSecond)}/s): something else ` +
            'causes those, as Buffers do'
      }
    }
    if (cpuRatio < limits.suspectedPauseRatio || !(promotesTooEarly || scavengesTooOften)) {
      return {
        state: 'ok',
        summary: `scavenges and the majors they cause take ${share} ` +
          `(${formatNumber(scavengesPerSecond)} scavenges/s, ` +
            `${formatNumber(ordinaryMajorsPerSecond)} majors/s)`
      }
    }
    const isSettled =
      signals.gcWindowSeconds >= limits.gcWindowSeconds &&
      (promotesTooEarly || signals.lifeCpuSeconds >= limits.lifeCpuSeconds)
    const because = semiSpaceMax(target, signals.heapSizeLimitBytes)?.because ?? ''
    return {
      state: cpuRatio >= limits.pauseRatio && isSettled ? 'confirmed' : 'suspected',
      summary: `Semi-spaces of at most ${formatBytes(semiSpaceMaxBytes)} force ` +
        `${formatNumber(scavengesPerSecond)} scavenges a ` +
          `second${promotesTooEarly ? ' and promote garbage' : ''}: GC takes ${share}.`,
      finding: {
        semiSpaceBytes: semiSpaceMaxBytes,
        scavengesPerSecond,
        scavengePauseRatio: signals.scavengePauseRatio,
        ordinaryMajorPauseRatio: signals.ordinaryMajorPauseRatio,
        gcPauseRatio: signals.gcPauseRatio ?? wallRatio,
        rssBytes: signals.rssBytes,
        shareBytes: signals.containerShareBytes
      },
      evidence: [
        evidence(
          'semiSpaceMaxBytes',
          semiSpaceMaxBytes,
          limits.semiSpaceMaxBytes,
          (value, limit) =>
            `A semi-space may hold at most ${value}, less than ${limit}: ${because}.`
        ),
        evidence(
          'semiSpaceCapacityBytes',
          semiSpaceCapacityBytes,
          semiSpaceMaxBytes,
          (value, limit) => `It has grown to ${value} of ${limit} and cannot grow further.`
        ),
        evidence(
          'scavengesPerSecond',
          scavengesPerSecond,
          limits.scavengesPerCpuSecond,
          value => `${value} scavenges, ${formatRatio(signals.scavengePauseRatio)} of wall time.`
        ),
        evidence(
          'ordinaryMajorPauseRatio',
          signals.ordinaryMajorPauseRatio,
          limits.ordinaryMajorRatio,
          (value, limit) =>
            `${formatNumber(ordinaryMajorsPerSecond)} ordinary major GCs a second, ${value} of ` +
              `wall time; ${promotesTooEarly
                ? `more than ${limit} while the live heap stays at ` +
                `${formatBytes(signals.liveHeapBytes ?? 0)} means objects are promoted that die ` +
                  'at once'
                    : `${limit} of CPU time would mean premature promotion`}.`
        ),
        evidence(
          'gcPauseRatio',
          signals.gcPauseRatio ?? wallRatio,
          limits.pauseRatio,
          (value, limit) =>
            `GC pauses take ${value} of wall time; ${limit} of CPU time from scavenges and the ` +
              'majors they cause would be worth a change.'
        ),
        ...cpuTimeEvidence(
          signals,
          `${formatNumber(signals.scavengesPerCpuSecond)} scavenges, and ` +
            `${formatRatio(cpuRatio)} in them and the majors they cause`
        ),
        ...sinceUpgrade(target, semiSpaceMaxBytes)
      ],
      impact: `${formatRatio(wallRatio)} of wall time goes into GC pauses, and about as much ` +
        'again into GC threads; requests wait for them.'
    }
  },

  fix (finding, target, limits) {
    const { rssBytes, shareBytes, gcPauseRatio, ...now } = finding
    // Processes that share the container have the same want, and get the same advice.
    const spareBytes = (shareBytes ?? Infinity) - (rssBytes ?? 0)
    const choice = SEMI_SPACE_CHOICES.filter(bytes => bytes > now.semiSpaceBytes)
      .map(bytes => predictYoungGeneration(now, bytes))
      // The next size up must be worth it, and its cost in memory must fit the container.
      .reduce((best, next) =>
        next.extraBytes < limits.spareShareRatio * spareBytes &&
        next.gcPauseRatio < best.gcPauseRatio - best.worthRatio
          ? next
          : best
      )
    // Pauses for external memory stay as they are.
    const savedRatio = now.scavengePauseRatio + now.ordinaryMajorPauseRatio - choice.gcPauseRatio
    const megabytes = choice.semiSpaceBytes / MIB
    const addedBytes = choice.semiSpaceBytes - now.semiSpaceBytes
    return [
      {
        title: `Let semi-spaces grow to ${megabytes} MiB`,
        change: nodeFlagChange(target, { '--max-semi-space-size': megabytes }),
        predicted: [
          prediction('gcPauseRatio', gcPauseRatio, Math.max(0, gcPauseRatio - savedRatio)),
          prediction('scavengesPerSecond', now.scavengesPerSecond, choice.scavengesPerSecond),
          ...(rssBytes === null
            ? []
            : [prediction('rssBytes', rssBytes, rssBytes + choice.extraBytes)])
        ],
        risk: `The new space may commit up to ${formatBytes(newSpaceBytes(addedBytes))} more, ` +
          `and the heap size limit rises by ${formatBytes(youngGenerationBytes(addedBytes))}. ` +
            'The old generation is untouched. At the same load; under a closed loop the ' +
              'throughput rises instead.'
      }
    ]
  }
})

/**
 * The upgrade that starves: Node 18 did not see the limit of a container on cgroup v2 and sized
 * itself for the machine; later ones see it, and choose a new space to fit.
 * @param {import('memwatch/protocol/frame').Hello} target
 * @param {number} semiSpaceMaxBytes
 */
function sinceUpgrade ({ v8, hostMemoryBytes, constrainedBytes }, semiSpaceMaxBytes) {
  if (
    constrainedBytes === undefined ||
    hostMemoryBytes === undefined ||
    Number(v8.split('.')[0]) < V8_THAT_SEES_CGROUP2
  ) { return [] }
  const older = chosenSizes(...V8_OF_NODE_18, hostMemoryBytes).semiSpaceBytes
  if (older <= semiSpaceMaxBytes) return []
  return [
    evidence(
      'semiSpaceMaxBytes',
      semiSpaceMaxBytes,
      older,
      (value, limit) =>
        'If it began with an upgrade: Node 18 knew nothing of a limit on cgroup v2, took the ' +
          `machine's ${formatBytes(hostMemoryBytes)} and allowed semi-spaces of ${limit}; this ` +
            `Node sees ${formatBytes(constrainedBytes)} and allows ${value}.`
    )
  ]
}

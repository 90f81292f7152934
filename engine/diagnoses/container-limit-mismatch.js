'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const {
  fittingOldBytes, fittingSemiSpaceBytes, neededContainerBytes
} = require('../v8/fitting-sizes')
const { youngGenerationBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
const PERCENT = 100
const PERCENTAGE = '--max-old-space-size-percentage'
/** A heap below this is not worth a container. */
const LEAST_HEAP_MIB = 32
/** A semi-space that is enough for most request loads. */
const ENOUGH_SEMI_SPACE_MIB = 16

module.exports = defineDiagnosis({
  id: 'container-limit-mismatch',
  title: 'V8 may grow past the memory limit of the container',
  severity: 'warning',
  scope: 'process',
  requires: ['heapSizeLimitBytes', 'besideHeapBytes', 'rssBytes'],
  uses: [
    'containerLimitBytes',
    'containerHighBytes',
    'containerHighHitsPerSecond',
    'memoryPressureRatio',
    'rssShareRatio',
    'heapResidentBytes',
    'containerLimitHitsPerSecond',
    'semiSpaceMaxBytes',
    'liveHeapHighestBytes',
    'liveHeapBytes',
    'containerProcesses',
    'containerHeaps',
    'containerHeapLimitBytes',
    'containerShareBytes',
    'workerHeaps',
    'workerHeapBytes',
    'neighboursBytes',
    'neighboursHeapBytes',
    'neighboursLiveHeapBytes'
  ],
  limits: {
    // From here on the heap alone exceeds the container: that is arithmetic, and no app decides it.
    blindRatio: 1,
    // Several heaps rarely fill at the same time: together they may be promised a quarter more.
    togetherBlindRatio: 1.25,
    // The heap could grow past the container, and does: RSS is so near its limit …
    rssShareRatio: 0.85,
    suspectedRssShareRatio: 0.7,
    // … and it is the heap that fills it.
    heapShareRatio: 0.4,
    // Waiting for memory under memory.high, share of the time.
    pressureRatio: 0.1,
    // The young generation was sized for another memory where it takes more of the container than
    // this.
    youngShareRatio: 0.25,
    // A heap that what lives would fill by more than this has no room to work in.
    liveShareRatio: 0.8
  },
  explains: [],
  runbook: 'MemwatchContainerLimitMismatch',

  judge (signals, limits, target) {
    const { heapSizeLimitBytes: heapLimit, containerLimitBytes: limit } = signals
    const { containerHighBytes: high } = signals
    const heaps = signals.containerHeaps ?? 1
    const workerHeapBytes = signals.workerHeapBytes ?? 0
    const beside = Math.max(0, signals.besideHeapBytes - workerHeapBytes)
    const neighboursBytes = signals.neighboursBytes ?? 0
    const neighboursHeapBytes = signals.neighboursHeapBytes ?? 0
    /**
     * @param {number} limitBytes that all heaps must fit
     * @param {number} shareBytes of that which is this process's
     */
    const findingFor = (limitBytes, shareBytes = limitBytes) => ({
      limitBytes,
      shareBytes,
      besideBytes: beside,
      heapLimitBytes: heapLimit,
      rssBytes: signals.rssBytes,
      semiSpaceBytes: signals.semiSpaceMaxBytes,
      liveBytes: signals.liveHeapHighestBytes ?? signals.liveHeapBytes ?? 0,
      heaps,
      ownHeaps: 1 + (signals.workerHeaps ?? 0),
      processes: signals.containerProcesses ?? 1,
      othersLiveBytes: workerHeapBytes + (signals.neighboursLiveHeapBytes ?? 0),
      othersBesideBytes: neighboursBytes - neighboursHeapBytes
    })
    if (
      high !== null &&
      (signals.memoryPressureRatio ?? 0) >= limits.pressureRatio &&
      (signals.containerHighHitsPerSecond ?? 0) > 0
    ) {
      return {
        state: 'confirmed',
        summary: `The cgroup's memory.high of ${formatBytes(high)} makes the process wait for ` +
          `memory ${formatRatio(signals.memoryPressureRatio ?? 0)} of the time.`,
        finding: findingFor(limit ?? high),
        evidence: [
          evidence(
            'memoryPressureRatio',
            signals.memoryPressureRatio ?? 0,
            limits.pressureRatio,
            (value, limit) =>
              `Something in the cgroup waits for memory ${value} of the time (${limit} count).`
          ),
          evidence(
            'containerHighHitsPerSecond',
            signals.containerHighHitsPerSecond ?? 0,
            0,
            value => `memory.high is exceeded ${value}.`
          ),
          evidence(
            'heapSizeLimitBytes',
            heapLimit,
            high - beside,
            (value, limit) => `The heap may grow to ${value}; ${limit} would fit below memory.high.`
          )
        ],
        impact:
          'The kernel throttles every allocation: the app stalls although nothing is killed and ' +
            'the limit is not reached.'
      }
    }
    if (limit === null) {
      return { state: 'ok', summary: 'the container has no memory limit that can be seen' }
    }
    // A heap that alone may outgrow the container is judged by itself: it needs no other.
    if (heaps > 1 && heapLimit < limits.blindRatio * limit) {
      const finding = findingFor(limit, signals.containerShareBytes ?? limit)
      return judgeTogether(signals, limits, finding)
    }
    const worst = heapLimit + beside
    if (worst <= limit) {
      return {
        state: 'ok',
        summary: `a full heap (${formatBytes(heapLimit)}) and what lies beside it ` +
          `(${formatBytes(beside)}) fit the container's ${formatBytes(limit)}`
      }
    }
    const blind = heapLimit > limits.blindRatio * limit
    const isNear = (signals.rssShareRatio ?? 0) >= limits.suspectedRssShareRatio
    const heapShare = (signals.heapResidentBytes ?? 0) / limit
    if (!blind && !isNear) {
      return {
        state: 'ok',
        summary: `a full heap (${formatBytes(heapLimit)}) would not fit the container's ` +
          `${formatBytes(limit)} beside the rest, but RSS is ` +
            `${formatRatio(signals.rssShareRatio ?? 0)} of it`
      }
    }
    const pressed =
      (signals.rssShareRatio ?? 0) >= limits.rssShareRatio && heapShare >= limits.heapShareRatio
    return {
      state: blind || pressed ? 'confirmed' : 'suspected',
      // Far from its limit nothing is at stake yet.
      severity: isNear ? 'warning' : 'info',
      summary: `V8 may use ${formatBytes(heapLimit)} of heap, and ${formatBytes(beside)} lie ` +
        `beside it: more than the container's ${formatBytes(limit)}.`,
      finding: findingFor(limit),
      evidence: [
        evidence(
          'heapSizeLimitBytes',
          heapLimit,
          limit - beside,
          (value, limit) =>
            `The heap may grow to ${value}; ${limit} would fit beside what else is resident.`
        ),
        evidence(
          'containerLimitBytes',
          limit,
          worst,
          (value, worst) => `The container may hold ${value}; all together it can become ${worst}.`
        ),
        ...(blind
          ? [
              evidence('heapSizeLimitBytes', heapLimit, limits.blindRatio * limit, () =>
                whyBlind(target, limit)
              )
            ]
          : []),
        evidence(
          'rssBytes',
          signals.rssBytes,
          limits.rssShareRatio * limit,
          (value, limit) =>
            `RSS is ${value}; from ${limit} on, with a heap that fills ` +
              `${formatRatio(limits.heapShareRatio)} of the container, it is serious (now ` +
                `${formatRatio(heapShare)}).`
        ),
        ...(signals.containerLimitHitsPerSecond
          ? [
              evidence(
                'containerLimitHitsPerSecond',
                signals.containerLimitHitsPerSecond,
                0,
                value => `Use met the limit ${value}, and the kernel had to reclaim.`
              )
            ]
          : [])
      ],
      impact:
        'V8 sees no need to collect before the container is full: the kernel kills the process ' +
          '(exit 137, OOMKilled), and the log says nothing of a heap.'
    }
  },

  fix (finding, target, limits) {
    const { limitBytes: limit, besideBytes: beside, liveBytes: live } = finding
    const { shareBytes, heapLimitBytes, rssBytes, semiSpaceBytes } = finding
    const { heaps, ownHeaps, processes } = finding
    const youngBytes = youngGenerationBytes(semiSpaceBytes ?? ENOUGH_SEMI_SPACE_MIB * MIB)
    // Without a flag the young generation was sized for the memory that V8 was told of: give it
    // what fits, too.
    const isYoungLarge = youngBytes * ownHeaps > limits.youngShareRatio * shareBytes
    const semiMib = isYoungLarge ? semiMibFor(heaps, shareBytes / ownHeaps) : null
    const young = semiMib === null ? youngBytes : youngGenerationBytes(semiMib * MIB)
    // The flag holds for each heap of the process, those of its workers too.
    const fittingBytes = fittingOldBytes({
      limitBytes: shareBytes,
      besideBytes: beside,
      youngBytes: young * ownHeaps
    })
    const megabytes = Math.max(LEAST_HEAP_MIB, Math.floor(fittingBytes / ownHeaps / MIB))
    const allLive = live + finding.othersLiveBytes
    const allBeside = beside + finding.othersBesideBytes
    const neededBytes = neededContainerBytes({
      liveBytes: allLive,
      besideBytes: allBeside,
      youngBytes: young * heaps
    })
    const each = heaps > 1 ? 'each heap of this process' : 'the heap'
    const [theHeaps, them] = heaps > 1 ? [`${heaps} heaps`, 'them'] : ['the heap', 'it']
    const part =
      processes === 1
        ? ''
        : ` It is the part of this process, ${formatBytes(shareBytes)}, of what ` +
          `${processes} processes share: each of them needs a limit.`
    const ask = {
      title: `Ask for ${formatBytes(neededBytes)} of memory`,
      change: { memoryLimitBytes: Math.round(neededBytes / MIB) * MIB },
      predicted: [],
      risk:
        `Computed from the ${formatBytes(allLive)} that live on ${theHeaps} and the ` +
        `${formatBytes(allBeside)} beside ${them}.`
    }
    // What it has need not be asked for.
    const asks = neededBytes > limit ? [ask] : []
    if (megabytes * MIB < live / limits.liveShareRatio) return [...asks, limitFix()]
    const seesLimit = target.constrainedBytes !== undefined && target.constrainedBytes <= limit
    return [
      limitFix(),
      ...(seesLimit && target.allowedFlags.includes(PERCENTAGE) ? [shareFix()] : []),
      ...asks
    ]

    /** The same as a share, so that it follows the container when that is changed. */
    function shareFix () {
      const percent = Math.floor((PERCENT * megabytes * MIB) / limit)
      return {
        ...limitFix(),
        title: `The same as a share of the container: ${percent} %`,
        change: nodeFlagChange(target, {
          [PERCENTAGE]: percent,
          ...(semiMib !== null && { '--max-semi-space-size': semiMib })
        })
      }
    }

    function limitFix () {
      const highest = beside + (megabytes * MIB + young) * ownHeaps
      return {
        title: `Keep ${each} below ${megabytes} MiB`,
        change: nodeFlagChange(target, {
          '--max-old-space-size': megabytes,
          ...(semiMib !== null && { '--max-semi-space-size': semiMib })
        }),
        predicted: [
          prediction('heapSizeLimitBytes', heapLimitBytes, megabytes * MIB + young),
          ...(highest < rssBytes ? [prediction('rssBytes', rssBytes, highest)] : [])
        ],
        risk:
          `V8 collects earlier and more often. The app keeps ${formatBytes(live)} alive` +
          `${formatNumber(live) === '0' ? ', as far as a major GC has shown' : ''}.${part}`
      }
    }
  }
})

/**
 * @param {number} heaps in the container
 * @param {number} shareBytes of one
 * @returns {number} MiB
 */
const semiMibFor = (heaps, shareBytes) =>
  heaps > 1 ? fittingSemiSpaceBytes(shareBytes) / MIB : ENOUGH_SEMI_SPACE_MIB

/**
 * @typedef {Record<'limitBytes' | 'shareBytes' | 'besideBytes' | 'heapLimitBytes' | 'heaps' |
 *   'ownHeaps' | 'processes' | 'othersBesideBytes', number>} Shared
 * @typedef {Record<'heapResidentBytes' | 'workerHeapBytes' | 'neighboursBytes' |
 *   'neighboursHeapBytes' | 'containerHeapLimitBytes' | 'containerLimitHitsPerSecond',
 *   number | null> & { rssBytes: number }} Together
 */

/**
 * Several heaps in one container: other processes, and workers. Each fits alone, and V8 knows of no
 * other. It takes several that fill at once, so what they may become is no proof by itself.
 * @template {Shared} Finding
 * @param {Together} signals
 * @param {Record<'togetherBlindRatio' | 'rssShareRatio' | 'suspectedRssShareRatio' |
 *   'heapShareRatio', number>} limits
 * @param {Finding} finding
 * @returns {import('./define-diagnosis').Judgement<Finding>}
 */
function judgeTogether (signals, limits, finding) {
  const { limitBytes: limit, processes, heaps } = finding
  const heapLimits = signals.containerHeapLimitBytes ?? finding.heapLimitBytes
  const beside = finding.besideBytes + finding.othersBesideBytes
  const usedRatio = (signals.rssBytes + (signals.neighboursBytes ?? 0)) / limit
  const workersAndNeighbours = (signals.workerHeapBytes ?? 0) + (signals.neighboursHeapBytes ?? 0)
  const heapRatio = ((signals.heapResidentBytes ?? 0) + workersAndNeighbours) / limit
  const sharers = `${nameSharers({ processes, heaps })} share the container's ${formatBytes(limit)}`
  const full = `full heaps (${formatBytes(heapLimits)})`
  if (heapLimits + beside <= limit) {
    const summary = `${sharers}: ${full} and what lies beside them (${formatBytes(beside)}) fit`
    return { state: 'ok', summary }
  }
  // Threads of one process are one program, of which a few work; processes know of no other.
  const blind = processes > 1 && heapLimits >= limits.togetherBlindRatio * limit
  if (!blind && usedRatio < limits.suspectedRssShareRatio) {
    return {
      state: 'ok',
      summary: `${sharers}: ${full} would not fit beside the rest (${formatBytes(beside)}), but ` +
        `all together use ${formatRatio(usedRatio)} of it`
    }
  }
  const pressed = usedRatio >= limits.rssShareRatio && heapRatio >= limits.heapShareRatio
  const victim = processes > 1 ? 'one of the processes' : 'the process'
  return {
    state: pressed ? 'confirmed' : 'suspected',
    // Far from the limit nothing is at stake yet.
    severity: usedRatio >= limits.suspectedRssShareRatio ? 'warning' : 'info',
    summary: `${sharers}: their heaps may grow to ${formatBytes(heapLimits)}, and ` +
      `${formatBytes(beside)} lie beside them.`,
    finding,
    evidence: evidenceTogether(signals, limits, finding, {
      heapLimits, beside, usedRatio, heapRatio
    }),
    impact: 'V8 sizes each heap as if it were alone in the container, and sees no need to ' +
      `collect before it is full: the kernel kills ${victim} (exit 137, OOMKilled), and the log ` +
      'says nothing of a heap.'
  }
}

/**
 * @param {Together} signals
 * @param {Record<'rssShareRatio' | 'heapShareRatio', number>} limits
 * @param {Shared} finding
 * @param {Record<'heapLimits' | 'beside' | 'usedRatio' | 'heapRatio', number>} all
 */
function evidenceTogether (signals, limits, finding, { heapLimits, beside, usedRatio, heapRatio }) {
  const { limitBytes: limit, shareBytes, ownHeaps } = finding
  const ownRoom = Math.max(0, shareBytes - finding.besideBytes) / ownHeaps
  const { rssBytes, containerLimitHitsPerSecond: hits } = signals
  const found = [
    evidence('containerHeapLimitBytes', heapLimits, limit - beside, (value, limit) =>
      `Full heaps take ${value} together; ${limit} would fit beside what else is resident.`),
    evidence('heapSizeLimitBytes', finding.heapLimitBytes, ownRoom, (value, limit) =>
      `The heap of ${ownHeaps > 1 ? 'the main thread' : 'this process'} may grow to ${value}; ` +
      `its part of the container has room for ${limit}.`),
    evidence('containerLimitBytes', limit, heapLimits + beside, (value, worst) =>
      `The container may hold ${value}; all together it can become ${worst}.`),
    evidence('rssBytes', rssBytes, shareBytes, value =>
      `RSS is ${value} here, ${formatBytes(usedRatio * limit)} in all processes: ` +
      `${formatRatio(usedRatio)} of the container. From ${formatRatio(limits.rssShareRatio)} on, ` +
      `with heaps that fill ${formatRatio(limits.heapShareRatio)} of it, it is serious (now ` +
      `${formatRatio(heapRatio)}).`)
  ]
  if (!hits) return found
  return [...found, evidence('containerLimitHitsPerSecond', hits, 0, value =>
    `Use met the limit ${value}, and the kernel had to reclaim.`)]
}

/**
 * @param {{ processes: number, heaps: number }} sharers
 * @returns {string} subject of a sentence
 */
function nameSharers ({ processes, heaps }) {
  if (processes === 1) return `${heaps} heaps of this process`
  if (heaps === processes) return `${processes} processes`
  return `${processes} processes with ${heaps} heaps`
}

/**
 * Why V8 does not know the limit.
 * @param {import('memwatch/protocol/frame').Hello} target
 * @param {number} limit
 */
function whyBlind ({ constrainedBytes, node, nodeOptions, execArgv }, limit) {
  if (
    [...nodeOptions, ...execArgv].some(option =>
      /^--max[-_](old[-_]space|heap)[-_]size/.test(option)
    )
  ) { return 'A flag sets the heap that high.' }
  if (constrainedBytes === undefined) {
    return `Node ${node} was told of no limit at start: the limit sits on a parent of the ` +
      'cgroup, came later, or this Node does not read it (Node 18 on cgroup v2).'
  }
  if (constrainedBytes === limit) {
    return `Node ${node} knew the limit at start: V8 chooses that much for it.`
  }
  return `Node ${node} was told of ${formatBytes(constrainedBytes)} at start, not of ` +
    `${formatBytes(limit)}.`
}

'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { fittingOldBytes, neededContainerBytes } = require('../v8/fitting-sizes')
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
    'containerLimitBytes', 'containerHighBytes', 'containerHighHitsPerSecond', 'memoryPressureRatio', 'rssShareRatio', 'heapResidentBytes',
    'containerLimitHitsPerSecond', 'semiSpaceMaxBytes', 'liveHeapHighestBytes', 'liveHeapBytes'
  ],
  limits: {
    // From here on the heap alone exceeds the container: that is arithmetic, and no app decides it.
    blindRatio: 1,
    // The heap could grow past the container, and does: RSS is so near its limit …
    rssShareRatio: 0.85,
    suspectedRssShareRatio: 0.7,
    // … and it is the heap that fills it.
    heapShareRatio: 0.4,
    // Waiting for memory under memory.high, share of the time.
    pressureRatio: 0.1,
    // The young generation was sized for another memory where it takes more of the container than this.
    youngShareRatio: 0.25,
    // A heap that what lives would fill by more than this has no room to work in.
    liveShareRatio: 0.8
  },
  explains: [],
  runbook: 'MemwatchContainerLimitMismatch',

  judge (signals, limits, target) {
    const { heapSizeLimitBytes: heapLimit, besideHeapBytes: beside, containerLimitBytes: limit, containerHighBytes: high } = signals
    /** @param {number} limitBytes that the heap must fit */
    const findingFor = limitBytes => ({
      limitBytes,
      besideBytes: beside,
      heapLimitBytes: heapLimit,
      rssBytes: signals.rssBytes,
      semiSpaceBytes: signals.semiSpaceMaxBytes,
      liveBytes: signals.liveHeapHighestBytes ?? signals.liveHeapBytes ?? 0
    })
    if (high !== null && (signals.memoryPressureRatio ?? 0) >= limits.pressureRatio && (signals.containerHighHitsPerSecond ?? 0) > 0) {
      return {
        state: 'confirmed',
        summary: `The cgroup's memory.high of ${formatBytes(high)} makes the process wait for memory ${formatRatio(signals.memoryPressureRatio ?? 0)} of the time.`,
        finding: findingFor(limit ?? high),
        evidence: [
          evidence('memoryPressureRatio', signals.memoryPressureRatio ?? 0, limits.pressureRatio, (value, limit) => `Something in the cgroup waits for memory ${value} of the time (${limit} count).`),
          evidence('containerHighHitsPerSecond', signals.containerHighHitsPerSecond ?? 0, 0, value => `memory.high is exceeded ${value}.`),
          evidence('heapSizeLimitBytes', heapLimit, high - beside, (value, limit) => `The heap may grow to ${value}; ${limit} would fit below memory.high.`)
        ],
        impact: 'The kernel throttles every allocation: the app stalls although nothing is killed and the limit is not reached.'
      }
    }
    if (limit === null) return { state: 'ok', summary: 'the container has no memory limit that can be seen' }
    const worst = heapLimit + beside
    if (worst <= limit) return { state: 'ok', summary: `a full heap (${formatBytes(heapLimit)}) and what lies beside it (${formatBytes(beside)}) fit the container's ${formatBytes(limit)}` }
    const blind = heapLimit > limits.blindRatio * limit
    const isNear = (signals.rssShareRatio ?? 0) >= limits.suspectedRssShareRatio
    const heapShare = (signals.heapResidentBytes ?? 0) / limit
    if (!blind && !isNear) {
      return { state: 'ok', summary: `a full heap (${formatBytes(heapLimit)}) would not fit the container's ${formatBytes(limit)} beside the rest, but RSS is ${formatRatio(signals.rssShareRatio ?? 0)} of it` }
    }
    const pressed = (signals.rssShareRatio ?? 0) >= limits.rssShareRatio && heapShare >= limits.heapShareRatio
    return {
      state: blind || pressed ? 'confirmed' : 'suspected',
      // Far from its limit nothing is at stake yet.
      severity: isNear ? 'warning' : 'info',
      summary: `V8 may use ${formatBytes(heapLimit)} of heap, and ${formatBytes(beside)} lie beside it: more than the container's ${formatBytes(limit)}.`,
      finding: findingFor(limit),
      evidence: [
        evidence('heapSizeLimitBytes', heapLimit, limit - beside, (value, limit) => `The heap may grow to ${value}; ${limit} would fit beside what else is resident.`),
        evidence('containerLimitBytes', limit, worst, (value, worst) => `The container may hold ${value}; all together it can become ${worst}.`),
        ...(blind ? [evidence('heapSizeLimitBytes', heapLimit, limits.blindRatio * limit, () => whyBlind(target, limit))] : []),
        evidence('rssBytes', signals.rssBytes, limits.rssShareRatio * limit, (value, limit) => `RSS is ${value}; from ${limit} on, with a heap that fills ${formatRatio(limits.heapShareRatio)} of the container, it is serious (now ${formatRatio(heapShare)}).`),
        ...(signals.containerLimitHitsPerSecond ? [evidence('containerLimitHitsPerSecond', signals.containerLimitHitsPerSecond, 0, value => `Use met the limit ${value}, and the kernel had to reclaim.`)] : [])
      ],
      impact: 'V8 sees no need to collect before the container is full: the kernel kills the process (exit 137, OOMKilled), and the log says nothing of a heap.'
    }
  },

  fix ({ limitBytes: limit, besideBytes: beside, heapLimitBytes, rssBytes, semiSpaceBytes, liveBytes: live }, target, limits) {
    const youngBytes = youngGenerationBytes(semiSpaceBytes ?? ENOUGH_SEMI_SPACE_MIB * MIB)
    // Without a flag the young generation was sized for the memory that V8 was told of: give it what fits, too.
    const semiMib = youngBytes > limits.youngShareRatio * limit ? ENOUGH_SEMI_SPACE_MIB : null
    const young = semiMib === null ? youngBytes : youngGenerationBytes(semiMib * MIB)
    const megabytes = Math.max(LEAST_HEAP_MIB, fittingOldBytes({ limitBytes: limit, besideBytes: beside, youngBytes: young }) / MIB)
    const neededBytes = neededContainerBytes({ liveBytes: live, besideBytes: beside, youngBytes: young })
    const ask = {
      title: `Ask for ${formatBytes(neededBytes)} of memory`,
      change: { memoryLimitBytes: Math.round(neededBytes / MIB) * MIB },
      predicted: [],
      risk: `Computed from the ${formatBytes(live)} that live on the heap and the ${formatBytes(beside)} beside it.`
    }
    // What it has need not be asked for.
    const asks = neededBytes > limit ? [ask] : []
    if (megabytes * MIB < live / limits.liveShareRatio) return [...asks, limitFix()]
    const seesLimit = target.constrainedBytes !== undefined && target.constrainedBytes <= limit
    return [limitFix(), ...(seesLimit && target.allowedFlags.includes(PERCENTAGE) ? [shareFix()] : []), ...asks]

    /** The same as a share, so that it follows the container when that is changed. */
    function shareFix () {
      const percent = Math.floor(PERCENT * megabytes * MIB / limit)
      return {
        ...limitFix(),
        title: `The same as a share of the container: ${percent} %`,
        change: nodeFlagChange(target, { [PERCENTAGE]: percent, ...(semiMib !== null && { '--max-semi-space-size': semiMib }) })
      }
    }

    function limitFix () {
      const highest = beside + megabytes * MIB + young
      return {
        title: `Keep the heap below ${megabytes} MiB`,
        change: nodeFlagChange(target, { '--max-old-space-size': megabytes, ...(semiMib !== null && { '--max-semi-space-size': semiMib }) }),
        predicted: [
          prediction('heapSizeLimitBytes', heapLimitBytes, megabytes * MIB + young),
          ...(highest < rssBytes ? [prediction('rssBytes', rssBytes, highest)] : [])
        ],
        risk: `V8 collects earlier and more often. The app keeps ${formatBytes(live)} alive${formatNumber(live) === '0' ? ', as far as a major GC has shown' : ''}.`
      }
    }
  }
})

/** Why V8 does not know the limit. @param {import('memwatch/frame').Hello} target @param {number} limit */
function whyBlind ({ constrainedBytes, node, nodeOptions, execArgv }, limit) {
  if ([...nodeOptions, ...execArgv].some(option => /^--max[-_](old[-_]space|heap)[-_]size/.test(option))) return 'A flag sets the heap that high.'
  if (constrainedBytes === undefined) return `Node ${node} was told of no limit at start: the limit sits on a parent of the cgroup, came later, or this Node does not read it (Node 18 on cgroup v2).`
  if (constrainedBytes === limit) {
    return `Node ${node} knew the limit at start: V8 chooses that much for it.`
  }
  return `Node ${node} was told of ${formatBytes(constrainedBytes)} at start, not of ${formatBytes(limit)}.`
}

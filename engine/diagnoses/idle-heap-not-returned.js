'use strict'

const { defineDiagnosis, ok } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { comfortableHeapMib } = require('../v8/fitting-sizes')
const { newSpaceBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
/** Recommended semi-space: large enough for bursts of requests, at the cost of more scavenges. */
const SMALLER_SEMI_SPACE_MIB = 8

module.exports = defineDiagnosis({
  id: 'idle-heap-not-returned',
  title: 'After a burst the heap keeps memory it no longer needs',
  severity: 'info',
  scope: 'isolate',
  requires: [
    'heapResidentBytes',
    'heapUsedBytes',
    'rssBytes',
    'gcsLastMinute',
    'lastMinuteUtilizationRatio',
    'semiSpaceCapacityBytes'
  ],
  uses: [
    'heapPooledBytes',
    'liveHeapBytes',
    'rssShareRatio',
    'containerLimitBytes',
    'semiSpaceMaxBytes',
    'liveHeapHighestBytes',
    'restFreedBytes'
  ],
  limits: {
    // Limits of an app at rest: hardly a GC, hardly any work, for a minute.
    gcsLastMinute: 5,
    utilizationRatio: 0.05,
    // Limits of the memory beyond the live heap, and of its share of RSS.
    slackBytes: 48 * MIB,
    slackShareRatio: 0.3,
    // Slack is a problem only if RSS is near the limit, or if the slack is a large part of the
    // limit.
    rssShareRatio: 0.6,
    slackOfLimitRatio: 0.25,
    // Far from any limit, memory that a full GC has freed is reported from this amount and share of
    // RSS on.
    freedBytes: 128 * MIB,
    freedShareRatio: 0.5,
    // An app at rest needs no new space with halves this large.
    semiSpaceBytes: 16 * MIB,
    // If the new space makes up this share of the slack, the fix shrinks the new space.
    newSpaceShareRatio: 1 / 3,
    // Share of the recommended heap limit that the live heap fills. The rest is headroom that keeps
    // major GCs cheap.
    comfortableShareRatio: 0.5
  },
  explains: [],
  runbook: 'MemwatchIdleHeapNotReturned',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits) {
    const live = signals.liveHeapBytes ?? signals.heapUsedBytes
    const held = signals.heapResidentBytes + (signals.heapPooledBytes ?? 0)
    const slack = held - live
    const dismissed = ruleOut(signals, limits, live, slack)
    if (dismissed) return judgeFreed(signals, limits, live, held) ?? dismissed
    const { rssBytes, rssShareRatio } = signals
    const ofLimit = rssShareRatio === null
      ? ''
      : `: RSS is ${formatRatio(rssShareRatio)} of the limit while the app is idle`
    return {
      state: 'confirmed',
      summary: `The idle app's heap keeps ${formatBytes(slack)} more than its ` +
        `${formatBytes(live)} of live objects.`,
      finding: findingOf(signals, live, slack, rssBytes),
      evidence: showEvidence(signals, limits, live),
      impact: `${formatBytes(slack)} are not available for other memory${ofLimit}.`
    }
  },

  fix (finding, target, limits) {
    const { slackBytes, liveBytes, heldBytes, semiSpaceBytes, rssBytes } = finding
    const newSpaceSlack = Math.max(0, newSpaceBytes(semiSpaceBytes - SMALLER_SEMI_SPACE_MIB * MIB))
    if (newSpaceSlack >= limits.newSpaceShareRatio * slackBytes) {
      const savedBytes = Math.min(slackBytes, newSpaceSlack)
      return [
        {
          title: 'Keep the new space smaller',
          change: nodeFlagChange(target, { '--max-semi-space-size': SMALLER_SEMI_SPACE_MIB }),
          predicted: [prediction('rssBytes', rssBytes, rssBytes - savedBytes)],
          risk: 'Scavenges run more often while the app is busy.'
        }
      ]
    }
    const megabytes = comfortableHeapMib(liveBytes, limits.comfortableShareRatio)
    const savedBytes = Math.max(0, heldBytes - megabytes * MIB)
    if (savedBytes < limits.slackBytes) return [RETURN_HEAP]
    return [
      {
        title: 'A lower heap limit makes V8 collect before it grows so far',
        change: nodeFlagChange(target, {
          '--max-old-space-size': megabytes,
          // Larger ones would leave V8 too little of the limit: decision 98.
          ...(finding.semiSpaceMaxBytes > limits.semiSpaceBytes && {
            '--max-semi-space-size': limits.semiSpaceBytes / MIB
          })
        }),
        predicted: [prediction('rssBytes', rssBytes, rssBytes - savedBytes)],
        risk: 'A burst with more live objects ends with "heap out of memory": first measure the ' +
          'live heap during a burst.'
      }
    ]
  }
})

/**
 * Fix for bursts whose live objects need most of the heap: a lower limit would end them.
 * @type {import('./define-diagnosis').Fix}
 */
const RETURN_HEAP = {
  title: 'Do the work of a burst where its memory can be returned',
  change: {
    code: 'Run it in a child process or a worker thread that ends afterwards. Or start Node.js ' +
      'with --expose-gc and call globalThis.gc() once after each burst.'
  },
  predicted: [],
  risk: 'A full GC stops the app for some milliseconds per 100 MiB of live objects.'
}

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'slackBytes' | 'liveBytes' | 'heldBytes' | 'semiSpaceBytes' |
 *   'semiSpaceMaxBytes' | 'rssBytes', number>} Finding liveBytes: with the burst of the last ten
 *   minutes
 */

/**
 * @param {Signals} signals
 * @param {number} live bytes, now
 * @param {number} slackBytes bytes of the heap beyond them
 * @param {number} rssBytes with this slack
 * @returns {Finding}
 */
const findingOf = (signals, live, slackBytes, rssBytes) => ({
  slackBytes,
  liveBytes: Math.max(live, signals.liveHeapHighestBytes ?? 0),
  heldBytes: live + slackBytes,
  semiSpaceBytes: signals.semiSpaceCapacityBytes,
  semiSpaceMaxBytes: signals.semiSpaceMaxBytes ?? signals.semiSpaceCapacityBytes,
  rssBytes
})

/**
 * Judges the heap that a full GC of memwatch freed while the app was idle: V8 would have kept it.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} live bytes
 * @param {number} held bytes
 * @returns {import('./define-diagnosis').Judgement<Finding> | null} null if it freed too little
 */
function judgeFreed (signals, limits, live, held) {
  const { restFreedBytes: freed, containerLimitBytes: limit } = signals
  if (freed === null || isBusy(signals, limits)) return null
  // RSS, if V8 had kept all of it.
  const rssBytes = signals.rssBytes + Math.max(0, live + freed - held)
  const rssRatio = limit === null ? 0 : rssBytes / limit
  const isMuch = freed >= limits.freedBytes && freed / rssBytes >= limits.freedShareRatio
  if (isInProportion(freed, rssBytes, limits)) return null
  if (!isMuch && isFar(freed, rssRatio, limit, limits)) return null
  return {
    state: 'confirmed',
    summary: `The idle app's heap kept ${formatBytes(freed)} more than its ${formatBytes(live)} ` +
      'of live objects, until memwatch ran a full GC. V8 runs none in an idle app.',
    finding: findingOf(signals, live, freed, rssBytes),
    evidence: [
      evidence('restFreedBytes', freed, limits.slackBytes, (value, limit) =>
        `A full GC that memwatch ran while the app was idle freed ${value} of its heap ` +
        `(threshold ${limit}).`),
      idleEvidence(signals, limits)
    ],
    impact: `Without this GC, RSS would be about ${formatBytes(rssBytes)}: ` +
      'MEMWATCH_FORCED_GC=off shows it.'
  }
}

/**
 * Is the app busy, is the heap in proportion to the live heap, or is no limit near?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} live bytes
 * @param {number} slack bytes
 */
function ruleOut (signals, limits, live, slack) {
  const { rssBytes, containerLimitBytes, rssShareRatio } = signals
  const { gcsLastMinute: gcs, lastMinuteUtilizationRatio: busy } = signals
  if (isBusy(signals, limits)) {
    return ok(`the app is not idle: ${formatNumber(gcs)} GCs in the last minute, the loop busy ` +
      `${formatRatio(busy)} of the time`)
  }
  if (isInProportion(slack, rssBytes, limits)) {
    return ok(`the idle heap holds ${formatBytes(live + slack)} for ${formatBytes(live)} of live ` +
      'objects: little more than it needs')
  }
  if (!isFar(slack, rssShareRatio ?? 0, containerLimitBytes, limits)) return null
  return ok(`the idle heap keeps ${formatBytes(slack)} that it does not need, but no limit is near`)
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isBusy = ({ gcsLastMinute, lastMinuteUtilizationRatio }, limits) =>
  gcsLastMinute > limits.gcsLastMinute || lastMinuteUtilizationRatio > limits.utilizationRatio

/**
 * @param {number} slack bytes
 * @param {number} rssBytes
 * @param {Limits} limits
 */
const isInProportion = (slack, rssBytes, limits) =>
  slack < limits.slackBytes || slack / rssBytes < limits.slackShareRatio

/**
 * Is no limit near, of which the slack takes much?
 * @param {number} slack bytes
 * @param {number} rssRatio RSS as a share of the container's limit
 * @param {number | null} limit bytes
 * @param {Limits} limits
 */
const isFar = (slack, rssRatio, limit, limits) =>
  rssRatio < limits.rssShareRatio &&
  (limit === null ? 0 : slack / limit) < limits.slackOfLimitRatio

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const idleEvidence = ({ gcsLastMinute, lastMinuteUtilizationRatio: busy }, limits) =>
  evidence('gcsLastMinute', gcsLastMinute, limits.gcsLastMinute, value =>
    `The app is idle: ${gcsLastMinute === 1 ? 'one GC' : `${value} GCs`} in the last ` +
    `minute, the loop busy ${formatRatio(busy)} of the time. ` +
    'Without GCs V8 returns no memory.')

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} live bytes
 */
function showEvidence (signals, limits, live) {
  const { heapResidentBytes, heapPooledBytes, semiSpaceCapacityBytes, rssBytes } = signals
  const nearBytes = limits.rssShareRatio * (signals.containerLimitBytes ?? rssBytes)
  return listEvidence(
    evidence('heapResidentBytes', heapResidentBytes, live + limits.slackBytes, (value, limit) =>
      `V8 holds ${value} for the heap (threshold ${limit}).`),
    heapPooledBytes && evidence('heapPooledBytes', heapPooledBytes, 0, value =>
      `V8 also keeps ${value} of pages that GCs emptied.`),
    idleEvidence(signals, limits),
    evidence('semiSpaceCapacityBytes', semiSpaceCapacityBytes, limits.semiSpaceBytes, value =>
      `The new space grew to two halves of ${value}, and does not shrink while the app is idle.`),
    evidence('rssBytes', rssBytes, nearBytes, (value, limit) =>
      `RSS is ${value} (threshold ${limit}).`)
  )
}

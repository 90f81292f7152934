'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')

const MIB = 2 ** 20

module.exports = defineDiagnosis({
  id: 'idle-heap-not-returned',
  title: 'After a burst the heap keeps memory it no longer needs',
  severity: 'info',
  scope: 'isolate',
  requires: ['heapResidentBytes', 'heapUsedBytes', 'rssBytes', 'gcsLastMinute', 'lastMinuteUtilizationRatio', 'semiSpaceCapacityBytes'],
  uses: ['liveHeapBytes', 'rssShareRatio', 'containerLimitBytes', 'semiSpaceMaxBytes'],
  limits: {
    // An app at rest: hardly a GC, hardly any work, for a minute.
    gcsLastMinute: 5,
    utilizationRatio: 0.05,
    // Held beyond what lives, and this share of RSS.
    slackBytes: 48 * MIB,
    slackShareRatio: 0.3,
    // It matters where the limit is near, or where it is a good part of the limit.
    rssShareRatio: 0.6,
    slackOfLimitRatio: 0.25
  },
  explains: [],
  runbook: 'MemwatchIdleHeapNotReturned',

  judge (signals, limits) {
    const { heapResidentBytes: resident, rssBytes, gcsLastMinute, lastMinuteUtilizationRatio: busy } = signals
    if (gcsLastMinute > limits.gcsLastMinute || busy > limits.utilizationRatio) {
      return { state: 'ok', summary: `the app is at work: ${formatNumber(gcsLastMinute)} GCs in the last minute, the loop busy ${formatRatio(busy)} of the time` }
    }
    const live = signals.liveHeapBytes ?? signals.heapUsedBytes
    const slack = resident - live
    if (slack < limits.slackBytes || slack / rssBytes < limits.slackShareRatio) {
      return { state: 'ok', summary: `at rest the heap holds ${formatBytes(resident)} for ${formatBytes(live)}: little more than it needs` }
    }
    const ofLimit = signals.containerLimitBytes === null ? 0 : slack / signals.containerLimitBytes
    const matters = (signals.rssShareRatio ?? 0) >= limits.rssShareRatio || ofLimit >= limits.slackOfLimitRatio
    if (!matters) return { state: 'ok', summary: `at rest the heap keeps ${formatBytes(slack)} that it does not need; no limit is near, so it costs nobody anything` }
    return {
      state: 'confirmed',
      summary: `At rest the heap keeps ${formatBytes(slack)} beyond the ${formatBytes(live)} that live.`,
      evidence: [
        evidence('heapResidentBytes', resident, live + limits.slackBytes, (value, limit) => `V8 holds ${value}; ${limit} would be in order.`),
        evidence('gcsLastMinute', gcsLastMinute, limits.gcsLastMinute, value => `The app rests: ${value} GCs in a minute, the loop busy ${formatRatio(busy)} of it. Without GCs nothing is given back.`),
        evidence('semiSpaceCapacityBytes', signals.semiSpaceCapacityBytes, 16 * MIB, value => `The new space grew to two halves of ${value}, and does not shrink at rest.`),
        evidence('rssBytes', rssBytes, limits.rssShareRatio * (signals.containerLimitBytes ?? rssBytes), (value, limit) => `RSS is ${value}; from ${limit} on it matters.`)
      ],
      impact: `${formatBytes(slack)} are missing when the next thing beside the heap needs memory${signals.rssShareRatio === null ? '' : `: RSS stands at ${formatRatio(signals.rssShareRatio)} of the limit at rest`}.`
    }
  },

  fix (signals, target) {
    const { semiSpaceCapacityBytes: semi, rssBytes } = signals
    const live = signals.liveHeapBytes ?? signals.heapUsedBytes
    const slack = signals.heapResidentBytes - live
    const newSpaceSlack = Math.max(0, 2 * (semi - 8 * MIB))
    if (newSpaceSlack >= slack / 3) {
      const saved = Math.min(slack, newSpaceSlack)
      return [{
        title: 'Keep the new space smaller',
        change: nodeFlagChange(target, { '--max-semi-space-size': 8 }),
        predicted: [{ signal: 'rssBytes', from: rssBytes, to: rssBytes - saved, unit: 'bytes' }],
        risk: 'Scavenges come more often while the app is at work.'
      }]
    }
    const megabytes = Math.max(64, Math.ceil(live / 0.5 / (32 * MIB)) * 32)
    return [{
      title: 'A lower heap limit makes V8 collect before it grows so far',
      change: nodeFlagChange(target, { '--max-old-space-size': megabytes }),
      predicted: [{ signal: 'rssBytes', from: rssBytes, to: rssBytes - Math.max(0, signals.heapResidentBytes - megabytes * MIB), unit: 'bytes' }],
      risk: 'A burst that keeps more alive at once than that ends with "heap out of memory": look at what a burst needs first.'
    }]
  }
})

'use strict'

const { ok } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const { formatBytes, formatRatio } = require('../text/format')

/** @typedef {import('./container-limit-mismatch').Limits} Limits */
/** @typedef {import('./container-limit-mismatch').Signals} Signals */
/** @typedef {import('./container-limit-mismatch').Finding} Finding */
/** @typedef {import('./container-limit-mismatch').Judgement} Judgement */

/**
 * Judges the heaps of several processes or workers in one container. Each heap fits alone, and V8
 * knows no heap but its own. The sum of their maximum sizes proves nothing by itself, because
 * several heaps rarely fill at once.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Finding} finding
 * @returns {Judgement}
 */
function judgeTogether (signals, limits, finding) {
  const { limitBytes: limit, processes, heaps } = finding
  const heapLimits = signals.containerHeapLimitBytes ?? finding.heapLimitBytes
  const beside = finding.besideBytes + finding.othersBesideBytes
  // The readings of several processes are of different moments: their sum may exceed the limit.
  const usedRatio = Math.min(1, (signals.rssBytes + (signals.neighboursBytes ?? 0)) / limit)
  const workersAndNeighbours = (signals.workerHeapBytes ?? 0) + (signals.neighboursHeapBytes ?? 0)
  const heapRatio = ((signals.heapResidentBytes ?? 0) + workersAndNeighbours) / limit
  const sharers = `${nameSharers({ processes, heaps })} share the container's ${formatBytes(limit)}`
  const full = `full heaps (${formatBytes(heapLimits)})`
  if (heapLimits + beside <= limit) {
    return ok(`${sharers}: ${full} and the memory outside the heaps (${formatBytes(beside)}) fit`)
  }
  // Only several processes count here, because they work independently. The threads of one process
  // share its work, and only a few are busy at a time.
  const blindRatio = usedRatio >= limits.togetherBlindUsedRatio
    ? limits.togetherBlindRatio
    : limits.togetherAlwaysBlindRatio
  const blind = processes > 1 && heapLimits >= blindRatio * limit
  if (!blind && usedRatio < limits.suspectedRssShareRatio) {
    return ok(`${sharers}: ${full} and the other memory (${formatBytes(beside)}) would not fit, ` +
      `but all together use only ${formatRatio(usedRatio)} of the limit`)
  }
  if (finding.shareBytes * processes < limits.leastPartRatio * limit) {
    return ok(`${sharers}, and this one holds ${formatBytes(signals.rssBytes)} of it: the ` +
      'verdict is on the larger processes')
  }
  const pressed = usedRatio >= limits.rssShareRatio && heapRatio >= limits.heapShareRatio
  const victim = processes > 1 ? 'one of the processes' : 'the process'
  return {
    state: pressed ? 'confirmed' : 'suspected',
    // Far below the limit there is no risk yet.
    severity: usedRatio >= limits.suspectedRssShareRatio ? 'warning' : 'info',
    summary: `${sharers}: their heaps may grow to ${formatBytes(heapLimits)}, and they use ` +
      `${formatBytes(beside)} outside the heaps.`,
    finding,
    evidence: showEvidence(signals, limits, finding, {
      heapLimits, beside, usedRatio, heapRatio
    }),
    impact: 'V8 sizes each heap as if it were alone in the container. If the heaps grow, the ' +
      `kernel kills ${victim} (exit 137, OOMKilled) before a heap is full, and the log has no ` +
      'message about a heap.'
  }
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Finding} finding
 * @param {Record<'heapLimits' | 'beside' | 'usedRatio' | 'heapRatio', number>} all
 */
function showEvidence (signals, limits, finding, { heapLimits, beside, usedRatio, heapRatio }) {
  const { limitBytes: limit, shareBytes, ownHeaps } = finding
  const ownRoom = Math.max(0, shareBytes - finding.besideBytes) / ownHeaps
  const { rssBytes, containerLimitHitsPerSecond: hits } = signals
  return listEvidence(
    evidence('containerHeapLimitBytes', heapLimits, limit - beside, (value, limit) =>
      `Full heaps take ${value} together; ${limit} would fit beside the other resident memory.`),
    evidence('heapSizeLimitBytes', finding.heapLimitBytes, ownRoom, (value, limit) =>
      `The heap of ${ownHeaps > 1 ? 'the main thread' : 'this process'} may grow to ${value}; ` +
      `its share of the container has room for ${limit}.`),
    evidence('containerLimitBytes', limit, heapLimits + beside, (value, worst) =>
      `The container's limit is ${value}; all processes together may grow to ${worst}.`),
    evidence('rssBytes', rssBytes, shareBytes, value =>
      `RSS is ${value} in this process, and ${formatBytes(usedRatio * limit)} ` +
      `(${formatRatio(usedRatio)} of the container) in all processes. The finding is severe from ` +
      `${formatRatio(limits.rssShareRatio)} on, if the heaps fill ` +
      `${formatRatio(limits.heapShareRatio)} of the container (now ${formatRatio(heapRatio)}).`),
    hits && evidence('containerLimitHitsPerSecond', hits, 0, value =>
      `Memory use reached the limit ${value}; each time the kernel had to reclaim memory.`)
  )
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

module.exports = { judgeTogether }

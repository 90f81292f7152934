'use strict'

const { ok } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const { formatBytes, formatRatio } = require('../text/format')

/** @typedef {import('./container-limit-mismatch').Limits} Limits */
/** @typedef {import('./container-limit-mismatch').Signals} Signals */
/** @typedef {import('./container-limit-mismatch').Finding} Finding */
/** @typedef {import('./container-limit-mismatch').Judgement} Judgement */

/**
 * Judges several heaps in one container, of processes and workers. Each heap fits alone, and V8
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
  const usedRatio = (signals.rssBytes + (signals.neighboursBytes ?? 0)) / limit
  const workersAndNeighbours = (signals.workerHeapBytes ?? 0) + (signals.neighboursHeapBytes ?? 0)
  const heapRatio = ((signals.heapResidentBytes ?? 0) + workersAndNeighbours) / limit
  const sharers = `${nameSharers({ processes, heaps })} share the container's ${formatBytes(limit)}`
  const full = `full heaps (${formatBytes(heapLimits)})`
  if (heapLimits + beside <= limit) {
    return ok(`${sharers}: ${full} and what lies beside them (${formatBytes(beside)}) fit`)
  }
  // Processes work independently. The threads of one process share its work, and only a few are
  // busy at a time.
  const blind = processes > 1 && heapLimits >= limits.togetherBlindRatio * limit
  if (!blind && usedRatio < limits.suspectedRssShareRatio) {
    return ok(`${sharers}: ${full} would not fit beside the rest (${formatBytes(beside)}), but ` +
      `all together use ${formatRatio(usedRatio)} of it`)
  }
  if (finding.shareBytes * processes < limits.leastPartRatio * limit) {
    return ok(`${sharers}, and this one holds ${formatBytes(signals.rssBytes)} of it: judged at ` +
      'the larger ones')
  }
  const pressed = usedRatio >= limits.rssShareRatio && heapRatio >= limits.heapShareRatio
  const victim = processes > 1 ? 'one of the processes' : 'the process'
  return {
    state: pressed ? 'confirmed' : 'suspected',
    // Far below the limit there is no risk yet.
    severity: usedRatio >= limits.suspectedRssShareRatio ? 'warning' : 'info',
    summary: `${sharers}: their heaps may grow to ${formatBytes(heapLimits)}, and ` +
      `${formatBytes(beside)} lie beside them.`,
    finding,
    evidence: showEvidence(signals, limits, finding, {
      heapLimits, beside, usedRatio, heapRatio
    }),
    impact: 'V8 sizes each heap as if it were alone in the container, and does not collect ' +
      `before that is full: the kernel kills ${victim} (exit 137, OOMKilled), and the log ` +
      'says nothing of a heap.'
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
      `${formatRatio(heapRatio)}).`),
    hits && evidence('containerLimitHitsPerSecond', hits, 0, value =>
      `Memory use met the limit ${value}, and the kernel had to reclaim memory.`)
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

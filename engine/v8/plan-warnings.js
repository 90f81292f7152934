'use strict'

const { formatMebibytes } = require('../text/format')
const {
  fittingOldBytes,
  fittingSemiSpaceBytes,
  ENOUGH_SEMI_SPACE_BYTES,
  NODE_BESIDE_BYTES,
  marksAlways
} = require('./fitting-sizes')
const { youngGenerationBytes } = require('./heap-sizing')
const { liveWarnings, FULL_SHARE } = require('./plan-live')
const { notesOf } = require('./plan-notes')

/** @typedef {import('./plan-case').PlanCase} PlanCase */
/** @typedef {import('./plan').RunningTarget} RunningTarget */

const MIB = 2 ** 20
/** A heap below this is not worth a container. */
const LEAST_OLD_BYTES = 32 * MIB
/**
 * Largest semi-space that starves an app which allocates for each request. From 8 MiB on few apps
 * starve.
 */
const SMALL_SEMI_SPACE_BYTES = 4 * MIB

/** V8 does not begin to mark a smaller live heap. */
const MARKED_BYTES = 8 * MIB
/** Share of a half-full old generation that a semi-space may have: half of the rest. */
const SEMI_SPACE_SHARE = 1 / 4

/**
 * Warnings of a planned case, worst first: the app does not start, dies, outgrows its container, or
 * becomes slow.
 * @param {PlanCase} planned
 * @param {{ from?: PlanCase, running?: RunningTarget }} context from: the case with which the
 *   planned case is compared
 * @returns {string[]} sentences
 */
function warningsOf (planned, { from, running }) {
  return [
    ...planned.meant.refusals,
    ...(running && !planned.running ? liveWarnings(planned, running) : []),
    ...limitWarnings(planned, running),
    ...(from ? comparison(from, planned) : []),
    ...semiSpaceWarnings(planned),
    ...markingWarnings(planned),
    ...notesOf(planned, running)
  ]
}

/**
 * A better semi-space size, if no flag sets it, and if the size that V8 derives starves the app or
 * takes too much of a small container.
 * @param {PlanCase} planned
 * @returns {number | undefined} bytes
 */
function betterSemiSpaceBytes ({ memoryLimitBytes, sizes: { semiSpaceBytes: semi }, sizeFlags }) {
  const fitting = fittingSemiSpaceBytes(memoryLimitBytes ?? Infinity)
  if (semi === null || sizeFlags.semiMb || sizeFlags.heapMb) return undefined
  return (semi <= SMALL_SEMI_SPACE_BYTES && semi < fitting) ||
    (memoryLimitBytes !== null && semi > fitting)
    ? fitting
    : undefined
}

/**
 * Warning of a heap that may outgrow its container.
 * @param {PlanCase} planned
 * @param {RunningTarget} [running]
 */
function limitWarnings (planned, running) {
  const { memoryLimitBytes: limitBytes, sizes } = planned
  const besideBytes = running?.besideHeapBytes ?? NODE_BESIDE_BYTES
  if (limitBytes === null || sizes.heapSizeLimitBytes + besideBytes <= limitBytes) return []
  const sure = sizes.heapSizeLimitBytes > limitBytes
  const better = betterSemiSpaceBytes(planned)
  const oldBytes = fittingOldBytes({
    limitBytes,
    besideBytes,
    youngBytes: youngGenerationBytes(better ?? sizes.semiSpaceBytes ?? 0)
  })
  const flags = `--max-old-space-size=${oldBytes / MIB}${better === undefined ? '' : ` --max-semi-space-size=${better / MIB}`}`
  return [
    'V8 may grow the heap to ' +
      `${formatMebibytes(sizes.heapSizeLimitBytes)}${sure ? '' : `, ${formatMebibytes(besideBytes)} lie beside it`}, ` +
      `but the container's limit is ${formatMebibytes(limitBytes)}: a leak ` +
      `${sure ? 'ends' : 'may end'} as a kill by the kernel (exit 137), and the app's log does ` +
      'not name the reason. ' +
      (oldBytes < Math.max(LEAST_OLD_BYTES, (running?.liveHeapBytes ?? 0) / FULL_SHARE)
        ? `No useful heap fits beside ${formatMebibytes(besideBytes)} of other memory: request ` +
          'more memory.'
        : `${flags} leaves ${formatMebibytes(besideBytes)} for memory outside the heap: a leak ` +
          'then ends with heap out of memory and a stack trace (exit 134).')
  ]
}

/**
 * Text with the changes from one case to the other.
 * @param {PlanCase} from
 * @param {PlanCase} to
 */
function comparison (from, to) {
  const [semiFrom, semiTo, oldFrom, oldTo] = [
    from.sizes.semiSpaceBytes,
    to.sizes.semiSpaceBytes,
    from.sizes.oldBytes,
    to.sizes.oldBytes
  ]
  const way = `${step(from, to)}:`
  const warnings = []
  if (semiFrom !== null && semiTo !== null && semiTo < semiFrom) {
    const wanted =
      betterSemiSpaceBytes(to) ??
      Math.min(semiFrom, fittingSemiSpaceBytes(to.memoryLimitBytes ?? Infinity))
    warnings.push(
      `${way} semi-space ` +
        `${change(semiFrom, semiTo)}${semiTo < ENOUGH_SEMI_SPACE_BYTES && wanted > semiTo ? `; add --max-semi-space-size=${wanted / MIB}` : ''}.`
    )
  } else if (semiFrom !== null && semiTo !== null && semiTo > semiFrom) {
    warnings.push(
      `${way} semi-space ${change(semiFrom, semiTo)}: the new space may take ` +
        `${formatMebibytes(2 * semiTo)} of RSS, ${formatMebibytes(2 * (semiTo - semiFrom))} more.`
    )
  }
  if (oldFrom !== null && oldTo !== null && oldTo !== oldFrom) {
    warnings.push(
      `${way} heap size limit ` +
        `${change(from.sizes.heapSizeLimitBytes, to.sizes.heapSizeLimitBytes)}${oldTo < oldFrom && oldTo < (to.memoryLimitBytes ?? Infinity) ? `: a live heap of more than ${formatMebibytes(oldTo)} ends the app (heap out of memory, exit 134)` : ''}.`
    )
  }
  return warnings
}

/**
 * Warning about the cost of a small young generation. 12 000 requests with JSON in 512 MiB took 37
 * (Node 26) to 47 % (Node 20) less CPU time with semi-spaces of 16 MiB than with V8's own choice.
 * @param {PlanCase} planned
 */
function semiSpaceWarnings (planned) {
  const { memoryLimitBytes, sizes: { semiSpaceBytes: semi }, oneMore } = planned
  const better = betterSemiSpaceBytes(planned)
  if (semi === null || better === undefined || better < semi) return []
  const warnings = [
    `Semi-spaces of at most ${formatMebibytes(semi)}: an app that allocates for each request ` +
      `spends much of its CPU on GC. --max-semi-space-size=${better / MIB} costs up to ` +
        `${formatMebibytes(2 * (better - semi))} of RSS; ` +
      'with 16, a JSON API in 512 MiB took 37 to 47 % less CPU time.'
  ]
  if (memoryLimitBytes !== null && oneMore && oneMore.semiSpaceBytes >= 4 * semi) {
    warnings.push(
      `${formatMebibytes(memoryLimitBytes)} is the worst limit: with 1 MiB more V8 would choose ` +
        `a semi-space of ${formatMebibytes(oneMore.semiSpaceBytes)}.`
    )
  }
  return warnings
}

/**
 * Warning of semi-spaces that leave V8 too little of the old generation, whatever is alive. With 64
 * MiB for both, an API on Node 24 used 16.7 s of CPU time in 14 s, and 0.8 s with semi-spaces of 16
 * MiB: docs/decisions/0098-semi-spaces-need-half-of-the-rest.md.
 * @param {PlanCase} planned
 */
function markingWarnings ({ sizes: { semiSpaceBytes: semi, oldBytes: old } }) {
  if (semi === null || old === null || !marksAlways(semi, old - MARKED_BYTES)) return []
  const fitting = Math.min(
    ENOUGH_SEMI_SPACE_BYTES, 2 ** Math.floor(Math.log2(Math.max(MIB, SEMI_SPACE_SHARE * old)))
  )
  return [
    `Semi-spaces of ${formatMebibytes(semi)} beside an old generation of ` +
      `${formatMebibytes(old)}: once more than ${formatMebibytes(MARKED_BYTES)} are alive, V8 ` +
      'may mark the heap all the time. A small API used 20 times as much CPU time. ' +
      `--max-semi-space-size=${fitting / MIB} prevents it.`
  ]
}

/**
 * @param {number} from
 * @param {number} to
 */
const change = (from, to) => `${formatMebibytes(from).replace(' MiB', '')} → ${formatMebibytes(to)}`

/**
 * @param {PlanCase} from
 * @param {PlanCase} to
 */
function step (from, to) {
  const [a, b] = [from.version.text, to.version.text]
  const [before, after] = [from, to].map(({ memoryLimitBytes }) =>
    memoryLimitBytes === null ? 'without a limit' : `at ${formatMebibytes(memoryLimitBytes)}`
  )
  if (before !== after) return `${a} ${before} → ${b} ${after}`
  return a === b ? `${a} ${after} with ${to.flags || 'no flags'}` : `${a} → ${b} ${after}`
}

module.exports = { warningsOf }

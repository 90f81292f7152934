'use strict'

const { formatMebibytes } = require('../text/format')
const {
  fittingOldBytes,
  comfortableOldBytes,
  neededContainerBytes,
  NODE_BESIDE_BYTES
} = require('./fitting-sizes')
const { youngGenerationBytes } = require('./heap-sizing')

const MIB = 2 ** 20
/** Share of the old generation above which V8 runs major GCs all the time: heap-limit-thrash.js. */
const FULL_SHARE = 0.8

/**
 * Warnings about the present live heap under the planned sizes.
 * @param {import('./plan-case').PlanCase} planned
 * @param {import('./plan').RunningTarget} running
 * @returns {string[]} sentences
 */
function liveWarnings (
  { memoryLimitBytes, sizes: { oldBytes, semiSpaceBytes } },
  { liveHeapBytes: live, besideHeapBytes: beside, rssBytes }
) {
  if (live === null) {
    return ['No major GC has run yet: it is unknown whether the live heap fits.']
  }
  const warnings = []
  const besideBytes = beside ?? NODE_BESIDE_BYTES
  const youngBytes = youngGenerationBytes(semiSpaceBytes ?? 0)
  const limitBytes = memoryLimitBytes ?? Infinity
  const old = comfortableOldBytes(live)
  const remedy =
    old <= fittingOldBytes({ limitBytes, besideBytes, youngBytes })
      ? ` --max-old-space-size=${old / MIB} is enough.`
      : ' A container of ' +
        `${formatMebibytes(neededContainerBytes({ liveBytes: live, besideBytes, youngBytes }))} ` +
        `is enough, with --max-old-space-size=${old / MIB}.`
  if (oldBytes !== null && live > oldBytes) {
    warnings.push(
      `The live heap is ${formatMebibytes(live)}, the old generation may hold ` +
        `${formatMebibytes(oldBytes)}: the app ends with heap out of memory (exit 134).${remedy}`
    )
  } else if (oldBytes !== null && live > FULL_SHARE * oldBytes) {
    warnings.push(
      `The live heap is ${formatMebibytes(live)}, the old generation may hold ` +
        `${formatMebibytes(oldBytes)}: V8 would run GCs nearly all the time.${remedy}`
    )
  }
  if (live + besideBytes > limitBytes) {
    warnings.push(
      `A live heap of ${formatMebibytes(live)} and ${formatMebibytes(besideBytes)} outside it ` +
        `are more than the ${formatMebibytes(limitBytes)} of the container: the kernel kills the ` +
        `app (exit 137).${warnings.length > 0 ? '' : remedy}`
    )
  } else if (rssBytes !== null && rssBytes > limitBytes) {
    warnings.push(
      `RSS is ${formatMebibytes(rssBytes)} now, more than the ${formatMebibytes(limitBytes)} of ` +
        'the container, although the live heap would fit.'
    )
  }
  return warnings
}

module.exports = { liveWarnings, FULL_SHARE }

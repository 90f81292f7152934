'use strict'

const { formatMebibytes } = require('../text/format')
const { PERCENTAGE } = require('./plan-flags')
const { V8_OF_NODE, KNOWN_NODES } = require('./node-versions')

/** @typedef {import('./plan-case').PlanCase} PlanCase */

/**
 * Notes that explain surprising numbers of a planned case, and name what the plan leaves out.
 * @param {PlanCase} planned
 * @param {import('./plan').RunningTarget} [running]
 * @returns {string[]} sentences
 */
const notesOf = (planned, running) => [
  ...flagNotes(planned),
  ...memoryNotes(planned),
  ...leftOut(planned, running)
]

/** @param {PlanCase} planned */
function flagNotes ({
  sizes: { oldBytes, semiSpaceBytes, heapSizeLimitBytes },
  sizeFlags: { oldMb, semiMb, heapMb },
  meant,
  toldBytes
}) {
  if (oldBytes === null || semiSpaceBytes === null) return []
  const notes = []
  const [semi, limit] = [formatMebibytes(semiSpaceBytes), formatMebibytes(heapSizeLimitBytes)]
  if (meant.percent !== undefined) {
    notes.push(
      `${PERCENTAGE}=${meant.percent} is of the ${formatMebibytes(toldBytes)} that Node.js ` +
        `sees: an old generation of ${oldMb} ` +
          `MiB.${meant.sizes.oldMb ? ' --max-old-space-size does not count beside it.' : ''}`
    )
  }
  if (oldMb && heapMb) {
    notes.push(
      `--max-heap-size=${heapMb} leaves ${Math.max(0, heapMb - oldMb)} MiB to the young ` +
        `generation: V8 makes semi-spaces of ${semi} of that, and the heap size limit becomes ` +
          `${limit}.`
    )
  } else if (oldMb && !semiMb) {
    notes.push(
      `An old generation of ${oldMb} MiB does not change the young one: semi-spaces of ${semi}, ` +
        `as V8 derives them from the memory, make a heap size limit of ${limit}.`
    )
  } else if (heapMb) {
    notes.push(
      `--max-heap-size=${heapMb} holds both generations: semi-spaces of ${semi}, and ` +
        `${formatMebibytes(oldBytes)} for the old one.`
    )
  }
  if (semiMb && semiMb * 2 ** 20 !== semiSpaceBytes) {
    notes.push(`--max-semi-space-size=${semiMb} is rounded up to a power of two: ${semi}.`)
  }
  return notes
}

/** @param {PlanCase} planned */
function memoryNotes ({
  version,
  memoryLimitBytes,
  seesLimit,
  seen,
  host,
  toldBytes,
  sizeFlags: { oldMb, semiMb, heapMb },
  running
}) {
  if (running) return []
  const notes = []
  // If flags set all sizes, it makes no difference whether Node.js sees the limit.
  const given = Boolean((oldMb && (semiMb || heapMb)) || (heapMb && !oldMb))
  const machine = `the machine's ${formatMebibytes(host.bytes)}`
  if (memoryLimitBytes !== null && seesLimit === 'cgroup-v2') {
    notes.push(
      `Node ${version.text} sees no memory limit on cgroup v2: V8 goes by ` +
        `${machine}.${seen && !given
          ? ' On cgroup v1 it sees the limit: heap size limit ' +
          `${formatMebibytes(seen.heapSizeLimitBytes)}, semi-space ` +
            `${formatMebibytes(seen.semiSpaceBytes)}.`
              : ''}`
    )
  } else if (memoryLimitBytes !== null && seesLimit === 'parent') {
    notes.push(
      'The limit stands on a parent of the process\'s cgroup, where Node.js does not look: V8 ' +
        `goes by ${machine}.`
    )
  } else if (
    memoryLimitBytes !== null &&
    toldBytes === host.bytes &&
    host.bytes < memoryLimitBytes
  ) {
    notes.push(`The machine has less than the limit: V8 goes by ${machine}.`)
  }
  if (toldBytes === host.bytes && !host.given && !given) {
    notes.push('That is the memory of this machine: --host-memory names that of another.')
  }
  return notes
}

/**
 * @param {PlanCase} planned
 * @param {import('./plan').RunningTarget} [running]
 */
function leftOut ({ version, meant, sizes, running: isNow }, running) {
  const notes = []
  if (meant.unknown.length > 0) {
    notes.push(`Not known here, and left out of the numbers: ${meant.unknown.join(' ')}.`)
  }
  if (!Object.hasOwn(V8_OF_NODE, version.major)) {
    notes.push(
      `How Node ${version.text} sizes its heap is not known here (but of ${KNOWN_NODES}): ` +
        `${isNow ? 'these are its own words' : 'the numbers are a guess'}.`
    )
  }
  if (running?.pointerCompression) {
    notes.push(
      isNow
        ? 'This build has pointer compression, which is not modelled: the numbers are its own.'
        : 'The target runs a build with pointer compression; the numbers are for one without, ' +
          'as nodejs.org has them.'
    )
  } else if (isNow && running && running.foretoldBytes !== sizes.heapSizeLimitBytes) {
    notes.push(
      'By the rules here the heap size limit would be ' +
        `${formatMebibytes(running.foretoldBytes)}: something sets it that is not modelled.`
    )
  }
  return notes
}

module.exports = { notesOf }

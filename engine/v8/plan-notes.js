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
      `${PERCENTAGE}=${meant.percent} is of the ${formatMebibytes(toldBytes)} that Node.js sees, ` +
        `so the old generation has ${oldMb} ` +
        `MiB.${meant.sizes.oldMb ? ' --max-old-space-size does not count beside it.' : ''}`
    )
  }
  if (oldMb && heapMb) {
    notes.push(
      `--max-heap-size=${heapMb} leaves ${Math.max(0, heapMb - oldMb)} MiB for the young ` +
        `generation. V8 chooses semi-spaces of ${semi}, and the heap size limit becomes ${limit}.`
    )
  } else if (oldMb && !semiMb) {
    notes.push(
      `An old generation of ${oldMb} MiB does not change the young generation: with semi-spaces ` +
        `of ${semi}, which V8 derives from the memory, the heap size limit is ${limit}.`
    )
  } else if (heapMb) {
    notes.push(
      `--max-heap-size=${heapMb} limits both generations: semi-spaces of ${semi}, and ` +
        `${formatMebibytes(oldBytes)} for the old generation.`
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
      `Node ${version.text} sees no memory limit on cgroup v2: V8 uses ` +
        `${machine}.${seen && !given
          ? ' On cgroup v1 it sees the limit: heap size limit ' +
          `${formatMebibytes(seen.heapSizeLimitBytes)}, semi-space ` +
            `${formatMebibytes(seen.semiSpaceBytes)}.`
              : ''}`
    )
  } else if (memoryLimitBytes !== null && seesLimit === 'parent') {
    notes.push(
      "The limit is on a parent of the process's cgroup, which Node.js does not read: V8 uses " +
        `${machine}.`
    )
  } else if (
    memoryLimitBytes !== null &&
    toldBytes === host.bytes &&
    host.bytes < memoryLimitBytes
  ) {
    notes.push(`The machine has less memory than the limit: V8 uses ${machine}.`)
  }
  if (toldBytes === host.bytes && !host.given && !given) {
    notes.push('This is the memory of this machine; --host-memory sets that of another one.')
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
    notes.push(`The numbers ignore unknown flags: ${meant.unknown.join(' ')}.`)
  }
  if (!Object.hasOwn(V8_OF_NODE, version.major)) {
    notes.push(
      `The heap sizing of Node ${version.text} is unknown (known: ${KNOWN_NODES}): ` +
        `${isNow ? 'the process reported these numbers' : 'the numbers are a guess'}.`
    )
  }
  if (running?.pointerCompression) {
    notes.push(
      isNow
        ? 'This build has pointer compression, which memwatch does not model: the numbers are ' +
          "the process's own."
        : 'The target runs a build with pointer compression; the numbers are for a build without ' +
          'it, as from nodejs.org.'
    )
  } else if (isNow && running && running.foretoldBytes !== sizes.heapSizeLimitBytes) {
    notes.push(
      "By memwatch's rules the heap size limit would be " +
        `${formatMebibytes(running.foretoldBytes)}: it has a cause that memwatch does not model.`
    )
  }
  return notes
}

module.exports = { notesOf }

'use strict'

const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')

const LEAK = Object.freeze({
  rollBack: 'Roll back if the growth began with the last release',
  raise: 'Raise the memory limit only to gain time: the growth continues',
  raiseHeap: 'Raise the limit that is reached first, of the heap or of the container, only to ' +
    'gain time: the growth continues'
})

/**
 * Measures that help a process until its fix is applied, by diagnosis. For other diagnoses the fix
 * itself is the measure.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const measures = Object.freeze({
  'js-heap-leak': [LEAK.rollBack, LEAK.raiseHeap],
  'native-memory-leak': [LEAK.rollBack, LEAK.raise],
  'resource-leak': [LEAK.rollBack, 'Raise the limit of open files only to gain time'],
  'context-leak': [LEAK.rollBack, LEAK.raiseHeap],
  'buffer-pool-pinning': [LEAK.rollBack],
  'heap-limit-thrash': ['Raise the heap limit, or start more processes, to shorten its GCs'],
  'allocator-fragmentation': [
    'Return the free memory with memwatch trim: the agent needs MEMWATCH_ALLOCATOR_ACCESS=trim'
  ],
  'event-loop-blocked': ['Remove the process from the load balancer: it does not answer while ' +
    'its event loop is blocked']
})

/**
 * Steps to take now, the most urgent first.
 * @param {import('../watch/watch-command').Report} report report of a process to which memwatch was
 *   attached
 * @returns {string[]} sentences
 */
function firstAid ({ attached, targets }) {
  const found = targets.flatMap(({ verdicts }) => verdicts)
    .filter(({ state, opportunity }) =>
      !opportunity && (state === 'confirmed' || state === 'suspected'))
  const times = found.flatMap(({ secondsLeft }) => secondsLeft ?? [])
  const steps = []
  if (attached?.ended) {
    steps.push('The process has ended. To compare the next process with this recording, run ' +
      'memwatch diagnose')
  } else if (times.length > 0) {
    steps.push(
      `Restart it within ${formatSeconds(Math.min(...times))}: after that, at the present rate, ` +
        'its memory reaches the limit'
    )
  }
  for (const { diagnosis, fix } of found) {
    steps.push(...measures[diagnosis] ?? [])
    if (fix.length > 0) steps.push(`Then, against ${diagnosis}: ${fix[0].title}`)
  }
  const open = targets.flatMap(({ headline }) => headline.open)
  if (found.length === 0 && open.length > 0) {
    steps.push(
      `Watch the process longer: ${[...new Set(open)].join(' and ')} could not be decided yet. ` +
        `memwatch triage ${attached?.pid} --for 300 --allow-forced-gc`
    )
  }
  if (steps.length === 0) steps.push('Nothing: no memory problem was found in this time')
  return [...new Set(steps)].map(step => `${step}.`)
}

/**
 * The container of a process, by its last frame.
 * @param {Readonly<Record<string, any>>} values of the frame
 * @returns {string[]} sentences
 */
function describeContainer ({
  containerLimitBytes, containerUsageBytes, containerWorkingSetBytes, containerOomKills
}) {
  if (containerUsageBytes === undefined && containerLimitBytes === undefined) {
    return ['No memory limit is visible.']
  }
  const size = (/** @type {number | undefined} */ bytes) =>
    bytes === undefined ? 'unknown' : formatBytes(bytes)
  const kills = containerOomKills > 0
    ? [`The kernel has killed ${containerOomKills} processes in it for memory.`]
    : []
  return [
    `Limit ${containerLimitBytes === undefined ? 'none' : size(containerLimitBytes)}, in use ` +
      `${size(containerUsageBytes)}, working set ${size(containerWorkingSetBytes)}.`,
    ...kills
  ]
}

module.exports = { firstAid, describeContainer, measures }

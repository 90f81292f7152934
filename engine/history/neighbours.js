'use strict'

const { NO_NEIGHBOURS, NO_WORKERS } = require('./tracks')
const { MOST_NUMBER } = require('../decode/rebuild')

/**
 * Upper bound of the processes summed per container. Hello lines may claim anything; real
 * containers of pods hold fewer than a hundred Node.js processes.
 */
const MOST_PROCESSES = 256

/**
 * Key of the container whose memory limit the process shares.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello of a main thread
 * @returns {string | undefined} undefined if the hello does not show it
 */
function memoryContainerOf ({ host, pod, cgroup }) {
  // A process may claim any cgroup. The claim counts only within its own pod, so it cannot affect
  // verdicts of other pods.
  if (cgroup !== undefined) return [host, pod?.uid, cgroup].join('/')
  return pod?.uid && pod.container ? [host, pod.uid, pod.container].join('/') : undefined
}

/**
 * Sums the memory of the other processes in the container of `own`.
 * @param {Iterable<import('./target').Target>} processes main threads of one container
 * @param {import('./target').Target} own main thread of the process itself, which is not counted
 * @returns {import('./tracks').Neighbours}
 */
function addNeighbours (processes, own) {
  const sum = { ...NO_NEIGHBOURS }
  const { containerLimitBytes } = own.values
  let left = MOST_PROCESSES
  for (const other of processes) {
    if (left-- === 0) break
    const { values, workers = NO_WORKERS } = other
    const { rssBytes } = values
    const isNeighbour = other !== own && other.connected && rssBytes !== undefined &&
      // A process with another limit lives in another container, even if it claims the same cgroup.
      values.containerLimitBytes === containerLimitBytes
    if (!isNeighbour) continue
    // Processes of one program share its file pages; RSS of `own` already counts them.
    const memoryBytes = values.rssAnonBytes ?? rssBytes
    const heapBytes = Math.min((values.heapPhysicalBytes ?? 0) + workers.heapBytes, memoryBytes)
    sum.processes++
    sum.heaps += 1 + workers.count
    sum.memoryBytes += memoryBytes
    sum.heapBytes += heapBytes
    const liveBytes = Math.min(values.liveHeapBytes ?? heapBytes, memoryBytes)
    sum.liveHeapBytes += liveBytes
    sum.largestLiveHeapBytes = Math.max(sum.largestLiveHeapBytes, liveBytes)
    sum.heapLimitBytes += (values.heapSizeLimitBytes ?? 0) + workers.heapLimitBytes
  }
  const names = /** @type {Exclude<keyof typeof sum, 'limitBytes'>[]} */ (Object.keys(sum))
  for (const name of names) sum[name] = Math.min(sum[name], MOST_NUMBER)
  return sum
}

/**
 * Memory that the heap of a worker cannot use: all other memory of its process, and that of the
 * other processes in the container.
 * @param {import('./target').Target | undefined} main main thread of its process
 * @param {import('./target').Target} worker
 * @returns {import('./tracks').Neighbours | undefined} undefined without a limit, or
 *   while the main thread is not connected
 */
function addOtherThreads (main, { values: { heapPhysicalBytes = 0 } }) {
  const { rssBytes, containerLimitBytes: limitBytes } = main?.values ?? {}
  if (!main?.connected || rssBytes === undefined || limitBytes === undefined) return undefined
  const others = Math.max(0, rssBytes - heapPhysicalBytes)
  const memoryBytes = Math.min(others + main.neighbours.memoryBytes, MOST_NUMBER)
  return { ...NO_NEIGHBOURS, memoryBytes, limitBytes }
}

module.exports = { memoryContainerOf, addNeighbours, addOtherThreads }

'use strict'

const { NO_NEIGHBOURS, NO_WORKERS } = require('./tracks')
const { MOST_NUMBER } = require('../decode/rebuild')

/**
 * Most processes of one container that are added up. Hello lines may claim anything; containers of
 * pods hold fewer than a hundred processes of Node.js.
 */
const MOST_PROCESSES = 256

/**
 * Name of the container whose memory limit a process shares with others.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello of a main thread
 * @returns {string | undefined} undefined where nothing tells
 */
function memoryContainerOf ({ host, pod, cgroup }) {
  // What a process says of its cgroup holds within its own pod: no other pod is judged by it.
  if (cgroup !== undefined) return [host, pod?.uid, cgroup].join('/')
  return pod?.uid && pod.container ? [host, pod.uid, pod.container].join('/') : undefined
}

/**
 * Sum of what other processes in the container of one hold.
 * @param {Iterable<import('./target').Target>} processes main threads of one container
 * @param {import('./target').Target} own left out
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
      // Who sees another limit lives in another container, whatever it says.
      values.containerLimitBytes === containerLimitBytes
    if (!isNeighbour) continue
    // Processes of one program share its file pages: those are counted once, with the own RSS.
    const memoryBytes = values.rssAnonBytes ?? rssBytes
    const heapBytes = Math.min((values.heapPhysicalBytes ?? 0) + workers.heapBytes, memoryBytes)
    sum.processes++
    sum.heaps += 1 + workers.count
    sum.memoryBytes += memoryBytes
    sum.heapBytes += heapBytes
    sum.liveHeapBytes += Math.min(values.liveHeapBytes ?? heapBytes, memoryBytes)
    sum.heapLimitBytes += (values.heapSizeLimitBytes ?? 0) + workers.heapLimitBytes
  }
  const names = /** @type {(keyof typeof sum)[]} */ (Object.keys(sum))
  for (const name of names) sum[name] = Math.min(sum[name], MOST_NUMBER)
  return sum
}

module.exports = { memoryContainerOf, addNeighbours }

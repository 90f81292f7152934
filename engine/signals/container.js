'use strict'

const { neighboursGrowth, shareOfLimit } = require('./shared-room')

/** @typedef {import('./index').Signal} Signal */

/** Node.js memory in the container: this process, its workers, and other processes. */
module.exports = {
  containerLimitBeforeBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory limit of the container at the start of the process, if it has changed since ' +
      'then.',
    compute: ({ values, hello: { constrainedBytes: told }, firstLimitBytes: first }) => {
      const { containerLimitBytes: now, containerHighBytes: high } = values
      if (now === undefined) return null
      if (typeof first === 'number' && first !== now) return first
      // Node.js reports the lower of memory.max and memory.high, never more than the agent reads. A
      // lower value means that the limit was raised before the first frame.
      return told !== undefined && told < Math.min(now, high ?? Infinity) ? told : null
    }
  }),
  containerProcesses: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Processes with an agent under the memory limit of the container, including this one.',
    compute: ({ neighbours }) => 1 + neighbours.processes
  }),
  containerHeaps: /** @type {Signal} */ ({
    unit: 'count',
    help: 'V8 heaps of these processes that report: main threads and workers.',
    compute: ({ neighbours, workers }) => 1 + workers.count + neighbours.heaps
  }),
  workerHeaps: /** @type {Signal} */ ({
    unit: 'count',
    help: 'V8 heaps of reporting worker threads of this process.',
    compute: ({ workers }) => workers.count
  }),
  workerHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Resident memory of the heaps of workerHeaps.',
    compute: ({ workers }) => workers.heapBytes
  }),
  containerHeapLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Sum of the heap size limits of all V8 heaps in the container that report.',
    compute: ({ values: { heapSizeLimitBytes: own }, workers, neighbours }) =>
      own === undefined ? null : own + workers.heapLimitBytes + neighbours.heapLimitBytes
  }),
  neighboursBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Anonymous resident memory of the other processes in the container.',
    compute: ({ neighbours }) => neighbours.memoryBytes
  }),
  neighboursHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "V8's part of neighboursBytes.",
    compute: ({ neighbours }) => neighbours.heapBytes
  }),
  neighboursLiveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Live heaps of the other processes, after the last major GC of each.',
    compute: ({ neighbours }) => neighbours.liveHeapBytes
  }),
  neighboursLargestLiveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Largest of these live heaps.',
    compute: ({ neighbours }) => neighbours.largestLiveHeapBytes
  }),
  threadRoomBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "For a worker: memory that its container's limit leaves beside all other memory in it.",
    compute: ({ neighbours: { limitBytes, memoryBytes }, values: { liveHeapBytes } }) =>
      limitBytes === undefined || liveHeapBytes === undefined
        ? null
        : Math.max(0, limitBytes - memoryBytes - liveHeapBytes)
  }),
  otherThreadsGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    help: 'For a worker: growth of that other memory.',
    compute: window =>
      window.neighbours.limitBytes === undefined ? null : neighboursGrowth(window)
  }),
  containerShareBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "This process's share of the container's memory limit, in proportion to the memory of " +
      'each process; the whole limit if it is alone.',
    compute: shareOfLimit
  })
}

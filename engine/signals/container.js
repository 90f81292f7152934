'use strict'

const { shareOfLimit } = require('./shared-room')

/** @typedef {import('./index').Signal} Signal */

/** Node.js memory in the container: this process, its workers, and other processes. */
module.exports = {
  containerProcesses: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Processes with an agent that share the memory limit of the container, this one too.',
    compute: ({ neighbours }) => 1 + neighbours.processes
  }),
  containerHeaps: /** @type {Signal} */ ({
    unit: 'count',
    help: 'V8 heaps in them that report: main threads and workers.',
    compute: ({ neighbours, workers }) => 1 + workers.count + neighbours.heaps
  }),
  workerHeaps: /** @type {Signal} */ ({
    unit: 'count',
    help: 'V8 heaps of the worker threads of this process that report.',
    compute: ({ workers }) => workers.count
  }),
  workerHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Resident memory of those heaps.',
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
    help: 'What V8 holds of that.',
    compute: ({ neighbours }) => neighbours.heapBytes
  }),
  neighboursLiveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What of that survived the last major GC of each process.',
    compute: ({ neighbours }) => neighbours.liveHeapBytes
  }),
  containerShareBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "This process's part of the container's memory limit, in proportion to what each " +
      'process holds; all of it where it is alone.',
    compute: shareOfLimit
  })
}

'use strict'

const vm = require('node:vm')
const v8 = /** @type {any} */ (require('node:v8'))

/**
 * Functions of `node:v8` and `node:vm`, captured when the agent loads, some 40 ms after the
 * preload: see primordials.js. A function that this Node.js lacks is undefined.
 */
module.exports = Object.freeze({
  /** @type {() => import('node:v8').HeapInfo & { total_allocated_bytes?: number }} */
  getHeapStatistics: v8.getHeapStatistics,
  /** @type {() => import('node:v8').HeapSpaceInfo[]} */
  getHeapSpaceStatistics: v8.getHeapSpaceStatistics,
  /** @type {typeof import('node:v8').getHeapSnapshot} */
  getHeapSnapshot: v8.getHeapSnapshot,
  /** @type {typeof import('node:v8').GCProfiler | undefined} */
  GCProfiler: v8.GCProfiler,
  /** @type {typeof import('node:v8').setFlagsFromString} */
  setFlagsFromString: v8.setFlagsFromString,
  /** @type {typeof vm.runInNewContext} */
  runInNewContext: vm.runInNewContext,
  /** Node.js 24+. @type {(() => { stop: () => string }) | undefined} */
  startCpuProfile: v8.startCpuProfile,
  /** @type {((options: object) => { stop: () => string }) | undefined} */
  startHeapProfile: v8.startHeapProfile
})

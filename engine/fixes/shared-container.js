'use strict'

const { comfortableOldBytes } = require('../v8/fitting-sizes')

/** @typedef {import('../diagnoses/define-diagnosis').Change} Change */

const MIB = 2 ** 20
const PERCENT = 100
const HEAP_SIZE = /(?:^| )--max-old-space-size(-percentage)?=(\d+)/

/**
 * Change for a process that shares its container. A variable reaches every process of the
 * container, and the heap size that suits one of them may kill another.
 * @param {Change} change
 * @param {Pick<import('../history/target').Target, 'neighbours' | 'workers' | 'values'>} target
 * @returns {Change} no variable, but a note, if its heap size does not suit all processes
 */
function forSharedContainer (change, { neighbours, workers, values }) {
  const { flag, env, memoryLimitBytes } = change
  const size = HEAP_SIZE.exec(flag ?? '')
  if (flag === undefined || !env || !size || neighbours.processes === 0) return change
  const { containerLimitBytes, rssBytes = 0, heapPhysicalBytes = 0 } = values
  const limit = memoryLimitBytes ?? containerLimitBytes ?? Infinity
  const oldBytes = size[1] ? limit * Number(size[2]) / PERCENT : Number(size[2]) * MIB
  const heaps = 1 + workers.count + neighbours.heaps
  const outside = Math.max(0, rssBytes - heapPhysicalBytes) +
    neighbours.memoryBytes - neighbours.heapBytes
  const isEnough = comfortableOldBytes(neighbours.largestLiveHeapBytes) <= oldBytes
  if (isEnough && oldBytes * heaps + outside <= limit) return change
  const others = neighbours.processes === 1
    ? 'the other process'
    : `the other ${neighbours.processes} processes`
  return {
    flag,
    ...(memoryLimitBytes !== undefined && { memoryLimitBytes }),
    note: `A variable would reach ${others} of the container, too: set the flag where this ` +
      'process starts. In node:cluster, setupPrimary({ execArgv }) sets it for all later workers.'
  }
}

module.exports = { forSharedContainer }

'use strict'

const { MOST_NUMBER } = require('../decode/rebuild')

/**
 * @param {Iterable<import('./target').Target>} threads of one process
 * @returns {import('./tracks').Workers} memory of all threads but the main one
 */
function addWorkers (threads) {
  const workers = { count: 0, heapBytes: 0, heapLimitBytes: 0, externalBytes: 0 }
  for (const { hello, values } of threads) {
    if (hello.threadId === 0) continue
    workers.count++
    workers.heapBytes += values.heapPhysicalBytes ?? 0
    workers.heapLimitBytes += values.heapSizeLimitBytes ?? 0
    workers.externalBytes += values.externalBytes ?? 0
  }
  const { count, heapBytes, heapLimitBytes, externalBytes } = workers
  return {
    count,
    heapBytes: Math.min(heapBytes, MOST_NUMBER),
    heapLimitBytes: Math.min(heapLimitBytes, MOST_NUMBER),
    externalBytes: Math.min(externalBytes, MOST_NUMBER),
    threads
  }
}

module.exports = { addWorkers }

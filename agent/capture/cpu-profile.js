'use strict'

const { readRssBytes } = require('../primordials')
const { getHeapStatistics } = require('../v8-functions')
const { CaptureError, stopAfter, textChunks, waitUnless } = require('./parts')
const { NO_PROFILER, startCpuProfile } = require('./profilers')

/**
 * Growth outside the heap that ends a profile, also as a share of the memory available: V8 holds
 * 0.4 KB for each different path of calls, and reading the profile takes up to eight times as much.
 */
const MOST_BYTES = 2 ** 24
const MOST_SHARE = 0.05

/** @returns {() => number} bytes that the process has grown outside the heap and Buffers */
function measureGrowth () {
  // RSS may stay as it was after Buffers are freed.
  let mostBuffers = 0
  function readOther () {
    const { total_physical_size: heap, external_memory: buffers } = getHeapStatistics()
    mostBuffers = Math.max(mostBuffers, buffers)
    try {
      return readRssBytes() - heap - mostBuffers
    } catch {
      return NaN // without /proc
    }
  }
  const first = readOther()
  return () => readOther() - first
}

/** CPU time of this thread. @type {import('./index').Capture} */
async function * cpuProfile (args, { wait }) {
  const { seconds, intervalMicroseconds, headroomBytes = Infinity } = args
  const running = startCpuProfile(intervalMicroseconds)
  if (!running) throw new CaptureError('not_supported', NO_PROFILER)
  const grown = measureGrowth()
  const isOver = () => grown() > Math.min(MOST_BYTES, MOST_SHARE * headroomBytes)
  const profile = await stopAfter(running, () => waitUnless(wait, seconds, isOver))
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { cpuProfile }

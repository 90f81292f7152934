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
/** Growth after which it is not read: a blocked event loop delays the end. */
const MOST_READ_BYTES = 2 ** 26
const MOST_READ_SHARE = 0.1

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
  const isAbove = (/** @type {number} */ bytes, /** @type {number} */ share) =>
    grown() > Math.min(bytes, share * headroomBytes)
  const profile = await stopAfter(running, async () => {
    await waitUnless(wait, seconds, () => isAbove(MOST_BYTES, MOST_SHARE))
    if (running.drop && isAbove(MOST_READ_BYTES, MOST_READ_SHARE)) {
      throw new CaptureError('not_supported', 'the call stacks take too much memory to read')
    }
  })
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { cpuProfile }

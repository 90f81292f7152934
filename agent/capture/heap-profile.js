'use strict'

const { CaptureError, stopAfter, textChunks } = require('./parts')
const { NO_PROFILER, startHeapProfile } = require('./profilers')

/**
 * One allocation in so many bytes is looked at. An API that does nothing but allocate and answer
 * lost 11 % of its throughput at 128 KiB, and at 512 KiB nothing that could be told from noise:
 * nobody asked for a gentle one. A leak of 1 MB a second is seen eight times a second, or twice.
 */
const INTERVAL_BYTES = 131_072
const GENTLE_INTERVAL_BYTES = 524_288
/** The first reading comes after this share of the time. */
const FIRST_SHARE = 1 / 3

/** @param {{ collected: boolean, gentle?: boolean }} options */
function start ({ collected, gentle = false }) {
  let running
  try {
    running = startHeapProfile({
      intervalBytes: gentle ? GENTLE_INTERVAL_BYTES : INTERVAL_BYTES,
      collected
    })
  } catch (error) {
    throw new CaptureError('not_supported', 'another heap profiler runs here: ' +
      `${/** @type {Error} */ (error).message}`)
  }
  if (!running) {
    throw new CaptureError(
      'not_supported',
      collected ? 'this Node cannot count what GCs took' : NO_PROFILER
    )
  }
  return running
}

/**
 * Live bytes by the place of their allocation, read twice, early and late. A leak is in both
 * readings, and larger in the second. V8 runs a full GC before each reading, so that only what is
 * alive is in it.
 * @type {import('./index').Capture}
 */
async function * heapProfile ({ seconds, gentle }, { wait }) {
  const running = start({ collected: false, gentle })
  /** @type {string | undefined} */
  let profile
  try {
    if (running.read) {
      await wait(seconds * FIRST_SHARE)
      yield { part: 'before', chunks: textChunks(running.read()) }
    }
    await wait(seconds * (running.read ? 1 - FIRST_SHARE : 1))
  } finally {
    profile = running.stop()
  }
  yield { part: 'profile', chunks: textChunks(profile) }
}

/** What was allocated, by where, whether it lives or not. @type {import('./index').Capture} */
async function * allocationProfile ({ seconds }, { wait }) {
  const profile = await stopAfter(start({ collected: true }), () => wait(seconds))
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { allocationProfile, heapProfile }

'use strict'

const { CaptureError, stopAfter, textChunks } = require('./parts')
const { NO_PROFILER, startHeapProfile } = require('./profilers')

/**
 * Mean distance of two samples, in allocated bytes, unless the exporter asks for another. An API
 * that only allocates and answers lost 11 % of its throughput at 128 KiB, and at 512 KiB nothing
 * that could be told from noise.
 */
const INTERVAL_BYTES = 131_072
/** A peer cannot ask for a distance that would slow any app down by its own. */
const LEAST_INTERVAL_BYTES = 4096
/** The first reading comes after this share of the time. */
const FIRST_SHARE = 1 / 3

/** @param {{ collected: boolean, intervalBytes?: number }} options */
function start ({ collected, intervalBytes = INTERVAL_BYTES }) {
  if (!(Number.isSafeInteger(intervalBytes) && intervalBytes >= LEAST_INTERVAL_BYTES)) {
    throw new CaptureError('bad_arguments', `intervalBytes: ${LEAST_INTERVAL_BYTES} or more`)
  }
  let running
  try {
    running = startHeapProfile({ intervalBytes, collected })
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
async function * heapProfile ({ seconds, intervalBytes }, { wait }) {
  const running = start({ collected: false, intervalBytes })
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

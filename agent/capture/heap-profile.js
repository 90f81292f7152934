'use strict'

const { CaptureError, stopAfter, textChunks } = require('./parts')
const { NO_PROFILER, startHeapProfile } = require('./profilers')
const { getHeapSpaceStatistics } = require('../v8-functions')

/**
 * One allocation in so many bytes is sampled. An API that does nothing but allocate and answer lost
 * 11 % of its throughput at 128 KiB, and at 512 KiB nothing that could be told from noise.
 */
const INTERVAL_BYTES = 131_072
/**
 * At a shorter interval a profile ends early when the app allocates more than this takes: a second
 * of its CPU time in all, at 30 µs each.
 */
const MOST_SAMPLES = 30_000
const LOOK_SECONDS = 0.25
/** The first reading comes after this share of the time. */
const FIRST_SHARE = 1 / 3

/** @param {{ collected: boolean, intervalBytes?: number }} options */
function start ({ collected, intervalBytes = INTERVAL_BYTES }) {
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
 * @param {number} intervalBytes
 * @param {import('./index').Tools} tools
 * @returns {import('./index').Tools['wait']} ends at once when enough was sampled
 */
function waitBounded (intervalBytes, { wait, gcs }) {
  if (intervalBytes >= INTERVAL_BYTES) return wait
  let before = gcs()
  let samples = 0
  return async seconds => {
    for (let waited = 0; waited < seconds; waited += LOOK_SECONDS) {
      await wait(Math.min(LOOK_SECONDS, seconds - waited))
      const now = gcs()
      samples += (now - before) * semiSpaceBytes() / intervalBytes
      before = now
      if (samples >= MOST_SAMPLES) return
    }
  }
}

/** What is allocated between two scavenges, about. */
function semiSpaceBytes () {
  const newSpace = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  return (newSpace?.space_size ?? 0) / 2
}

/**
 * Live bytes by the place of their allocation, read twice, early and late. A leak is in both
 * readings, and larger in the second. V8 runs a full GC before each reading, so that only what is
 * alive is in it.
 * @type {import('./index').Capture}
 */
async function * heapProfile ({ seconds, intervalBytes = INTERVAL_BYTES }, tools) {
  const running = start({ collected: false, intervalBytes })
  const wait = waitBounded(intervalBytes, tools)
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

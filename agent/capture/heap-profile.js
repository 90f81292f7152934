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
/**
 * Time between two checks for a major GC. Right after one, all sampled objects that are still there
 * are alive.
 */
const LOOK_SECONDS = 0.1
/** After so much more than the time that was asked for, it is read without a major GC. */
const PATIENCE = 1.5
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
 * @param {import('./index').Tools} tools
 * @param {{ fromSeconds: number, mostSeconds: number }} options
 * @returns {Promise<void>} after a major GC
 */
async function afterMajor ({ wait, majors }, { fromSeconds, mostSeconds }) {
  await wait(fromSeconds)
  const before = majors()
  for (
    let waited = 0;
    waited < mostSeconds - fromSeconds && majors() === before;
    waited += LOOK_SECONDS
  ) { await wait(LOOK_SECONDS) }
}

/**
 * Live bytes by the place of their allocation, read twice, early and late. A leak is in both
 * readings, and larger in the second.
 * @type {import('./index').Capture}
 */
async function * heapProfile ({ seconds, gentle }, tools) {
  const running = start({ collected: false, gentle })
  /** @type {string | undefined} */
  let profile
  try {
    if (running.read) {
      const firstSeconds = seconds * FIRST_SHARE
      await afterMajor(tools, { fromSeconds: firstSeconds, mostSeconds: 2 * firstSeconds })
      yield { part: 'before', chunks: textChunks(running.read()) }
    }
    const restSeconds = seconds * (1 - FIRST_SHARE)
    await afterMajor(tools, { fromSeconds: restSeconds, mostSeconds: PATIENCE * restSeconds })
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

'use strict'

const { CaptureError, stopAfter, textChunks, waitUnless } = require('./parts')
const { NO_PROFILER, inspectHeap, startHeapProfile } = require('./profilers')
const { debug } = require('../guard')
const { nowMs } = require('../primordials')
const { getHeapSpaceStatistics } = require('../v8-functions')

/**
 * Mean bytes allocated between two samples by default. At 128 KiB an API that does little but
 * allocate lost 11 % of its throughput, and at 512 KiB no measurable share.
 */
const INTERVAL_BYTES = 131_072
/** Lower bound, so that a peer cannot slow the app down with a small interval. */
const LEAST_INTERVAL_BYTES = 1024
/**
 * At INTERVAL_BYTES and below, a profile ends early after about this many samples: one second of
 * CPU time, at 30 µs each.
 */
const MOST_SAMPLES = 30_000
const MOST_EARLY_SECONDS = 120
const EARLY_EVERY_MS = 3_500_000
/** Share of the duration that passes before the first reading. */
const FIRST_SHARE = 1 / 3

/**
 * @param {{ collected: boolean, intervalBytes?: number }} options
 * @param {typeof startHeapProfile} begin
 */
function start ({ collected, intervalBytes = INTERVAL_BYTES }, begin = startHeapProfile) {
  if (!(Number.isSafeInteger(intervalBytes) && intervalBytes >= LEAST_INTERVAL_BYTES)) {
    throw new CaptureError('bad_arguments', `intervalBytes: ${LEAST_INTERVAL_BYTES} or more`)
  }
  let running
  try {
    running = begin({ intervalBytes, collected })
  } catch (error) {
    throw new CaptureError('not_supported', 'another heap profiler runs here: ' +
      `${/** @type {Error} */ (error).message}`)
  }
  if (!running) {
    throw new CaptureError(
      'not_supported',
      collected ? 'this Node cannot count garbage' : NO_PROFILER
    )
  }
  return running
}

/**
 * @param {number} intervalBytes
 * @param {import('./index').Tools} tools
 * @returns {(seconds: number, share?: number, isOver?: () => boolean) => Promise<unknown>} a wait
 *   that ends early once the profile has this share of MOST_SAMPLES, or is over
 */
function waitBounded (intervalBytes, { wait, gcs }) {
  if (intervalBytes > INTERVAL_BYTES) return wait
  let before = gcs()
  let samples = 0
  return (seconds, share = 1, isOver = () => false) => waitUnless(wait, seconds, () => {
    const now = gcs()
    samples += (now - before) * readSemiSpaceBytes() / intervalBytes
    before = now
    return samples >= share * MOST_SAMPLES || isOver()
  })
}

/** Approximate bytes allocated between two scavenges. */
function readSemiSpaceBytes () {
  const newSpace = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  return (newSpace?.space_size ?? 0) / 2
}

/** A heap profile that began before its request. Without one it ends unread: no full GC runs. */
class EarlyProfile {
  /** @type {import('./profilers').RunningHeap | undefined} */
  #running
  #beganMs = nowMs()

  /**
   * @param {Pick<import('./index').CaptureArguments, 'seconds' | 'intervalBytes'>} args
   * @param {Pick<import('./index').Tools, 'wait' | 'gcs'>} tools
   * @throws {CaptureError}
   */
  constructor ({ seconds, intervalBytes = INTERVAL_BYTES }, tools) {
    this.#running = start({ collected: false, intervalBytes }, inspectHeap)
    waitBounded(intervalBytes, tools)(seconds, 1, () => !this.isRunning)
      .then(() => this.drop())
      .catch(error => debug('early profile: %s', error))
  }

  get isRunning () {
    return this.#running !== undefined
  }

  /** The running profile, which the caller has to end, and its age; undefined: it has ended. */
  take () {
    const running = this.#running
    this.#running = undefined
    return running && { running, seconds: (nowMs() - this.#beganMs) / 1000 }
  }

  drop () {
    this.take()?.running.drop?.()
  }
}

let earlyAtMs = -Infinity

/**
 * Begins an early profile, at most once in EARLY_EVERY_MS. A refusal counts, as it may cost a GC.
 * @param {any} args unchecked
 * @param {Pick<import('./index').Tools, 'wait' | 'gcs'>} tools
 * @throws {CaptureError}
 */
function beginEarly (args, tools) {
  if (!(args?.seconds >= 0 && args.seconds <= MOST_EARLY_SECONDS)) {
    throw new CaptureError('bad_arguments', `seconds: 0 to ${MOST_EARLY_SECONDS}`)
  }
  if (nowMs() - earlyAtMs < EARLY_EVERY_MS) {
    throw new CaptureError('too_soon', 'a profile began less than an hour ago')
  }
  earlyAtMs = nowMs()
  return new EarlyProfile(args, tools)
}

/**
 * Live bytes by allocation site, read twice, early and late: a leak is in both readings, and larger
 * in the second. V8 runs a full GC before each reading, so that it contains only live objects. A
 * profile that began before this request is continued: its first reading waits less.
 * @type {import('./index').Capture}
 */
async function * heapProfile ({ seconds, intervalBytes = INTERVAL_BYTES }, tools) {
  const early = tools.early?.take()
  const running = early?.running ?? start({ collected: false, intervalBytes })
  const wait = waitBounded(intervalBytes, tools)
  /** @type {string | undefined} */
  let profile
  try {
    if (running.read) {
      await wait(Math.max(0, seconds * FIRST_SHARE - (early?.seconds ?? 0)), FIRST_SHARE)
      yield { part: 'before', chunks: textChunks(running.read()) }
    }
    await wait(seconds * (running.read ? 1 - FIRST_SHARE : 1))
  } finally {
    profile = running.stop()
  }
  yield { part: 'profile', chunks: textChunks(profile) }
}

/** Allocated bytes by site, live or not. @type {import('./index').Capture} */
async function * allocationProfile ({ seconds }, { wait }) {
  const profile = await stopAfter(start({ collected: true }), () => wait(seconds))
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { EarlyProfile, allocationProfile, beginEarly, heapProfile }

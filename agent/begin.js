'use strict'

const { clearTimeout, nowMs, setTimeout } = require('./primordials')
const { gcObserver } = require('./collect/gc-observer')

/**
 * The app's start is the app's: only GCs are observed from the first moment. Everything else is
 * loaded, and the exporter called, when the loop has had its first turns, bit by bit: at once it
 * would hold the app up for some ten milliseconds.
 */
const LOAD_AFTER_MS = 40
const LOAD_EVERY_MS = 1
/** A process that ends sooner says nothing. */
const FIRST_FRAME_MS = 100

/** A step of stopping: the others follow, whatever it throws. @param {() => void} work */
const attempt = work => {
  try {
    work()
  } catch {}
}

/**
 * Begin to watch this isolate.
 * @param {import('./protocol/config').Config} config
 * @param {(format: string, ...values: unknown[]) => void} debug
 * @returns {{ stop: () => void }}
 */
function begin (config, debug) {
  const beganMs = nowMs()
  let ended = false
  const gcs = gcObserver()
  /** @type {ReturnType<typeof import('./agent').start> | undefined} */
  let agent

  const pieces = (function * () {
    yield require('node:worker_threads')
    yield require('./protocol/frame')
    yield require('./collect/gc')
    agent = require('./agent').start(config, gcs)
    yield
    yield * agent.load()
  })()
  /** @type {(work: (exitCode: number) => void) => (exitCode?: any) => void} */
  const fenced = work => exitCode => {
    if (ended) return
    try {
      work(exitCode)
    } catch (error) {
      // A call in here throws as well when the stack is used up.
      attempt(stop)
      attempt(() => debug('off: %s', error))
    }
  }
  const loadNext = fenced(() => {
    if (!pieces.next().done) loadTimer = setTimeout(loadNext, LOAD_EVERY_MS)
  })
  /** Whatever is not loaded yet. */
  const loadRest = () => {
    clearTimeout(loadTimer)
    while (!pieces.next().done);
  }
  const run = fenced(() => {
    loadRest()
    agent?.run()
  })
  /** @type {NodeJS.Timeout | undefined} */
  let firstTimer
  let loadTimer = setTimeout(fenced(() => {
    firstTimer = setTimeout(run, FIRST_FRAME_MS - LOAD_AFTER_MS)
    loadNext()
  }), LOAD_AFTER_MS)
  const bye = fenced(exitCode => {
    ended = true
    if (nowMs() - beganMs < FIRST_FRAME_MS) return
    loadRest()
    agent?.bye(exitCode)
  })
  // Not `once`: that removes the listener as it is called, which throws on a frozen `process`.
  process.on('exit', bye)

  const stop = () => {
    ended = true
    clearTimeout(loadTimer)
    clearTimeout(firstTimer)
    attempt(() => process.removeListener('exit', bye))
    attempt(gcs.disconnect)
    attempt(() => agent?.stop())
  }
  return { stop }
}

module.exports = { begin }

'use strict'

const { clearTimeout, nowMs, setTimeout } = require('./primordials')
const { startGcs, stopGcs } = require('./collect/gc-start')

/**
 * The app's start is the app's: only GCs are counted from the first moment. Everything else is
 * loaded, and the exporter called, when the loop has had its first turns, bit by bit: at once it
 * would hold the app up for some ten milliseconds.
 */
const LOAD_AFTER_MS = 40
const LOAD_EVERY_MS = 1
/** A process that ends sooner says nothing. */
const FIRST_FRAME_MS = 100

/**
 * States of the agent in this isolate. It enters each at most once, and in this order.
 *
 *   waiting  the app starts: only GCs are counted
 *   loading  after 40 ms: a piece of the agent is loaded each millisecond
 *   running  after 100 ms, with what is not loaded yet: a frame each interval
 *   ended    the process ends, the agent failed, or it was stopped
 */
const STATES = Object.freeze({
  waiting: 'waiting',
  loading: 'loading',
  running: 'running',
  ended: 'ended'
})

/** A step of stopping: the others follow, whatever it throws. @param {() => void} work */
const attempt = work => {
  try {
    work()
  } catch {}
}

/** The way of the agent from the preload to the end of the isolate. */
class Beginning {
  /** @type {keyof typeof STATES} */
  #state = STATES.waiting
  #beganMs = nowMs()
  #gcs
  #config
  #debug
  /** @type {import('./isolate-agent').Agent | undefined} */
  #agent
  #pieces = this.#load()
  /** The next state, or the next piece. @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {NodeJS.Timeout | undefined} */
  #pieceTimer
  #onPiece = this.#fenced(() => this.#loadPiece())
  #onExit = this.#fenced(exitCode => this.#end(exitCode))

  /**
   * @param {import('./protocol/config').Config} config
   * @param {(format: string, ...values: unknown[]) => void} debug
   */
  constructor (config, debug) {
    this.#gcs = startGcs(config.gcHooks)
    this.#config = config
    this.#debug = debug
    this.#timer = setTimeout(this.#fenced(() => this.#startLoading()), LOAD_AFTER_MS)
    // Not `once`: that removes the listener as it is called, which throws on a frozen `process`.
    process.on('exit', this.#onExit)
  }

  /** Whatever state it is in; what it has begun ends. */
  stop () {
    this.#state = STATES.ended
    clearTimeout(this.#timer)
    clearTimeout(this.#pieceTimer)
    attempt(() => process.removeListener('exit', this.#onExit))
    attempt(() => stopGcs(this.#gcs))
    attempt(() => this.#agent?.stop())
  }

  #startLoading () {
    this.#state = STATES.loading
    this.#timer = setTimeout(this.#fenced(() => this.#run()), FIRST_FRAME_MS - LOAD_AFTER_MS)
    this.#loadPiece()
  }

  #loadPiece () {
    if (!this.#pieces.next().done) this.#pieceTimer = setTimeout(this.#onPiece, LOAD_EVERY_MS)
  }

  #run () {
    this.#state = STATES.running
    this.#loadRest()
    this.#agent?.run()
  }

  /** @param {number} exitCode */
  #end (exitCode) {
    this.#state = STATES.ended
    if (nowMs() - this.#beganMs < FIRST_FRAME_MS) return
    this.#loadRest()
    this.#agent?.bye(exitCode)
  }

  * #load () {
    yield require('node:worker_threads')
    yield require('./protocol/frame')
    yield require('./collect/gc')
    this.#agent = new (require('./isolate-agent').Agent)(this.#config, this.#gcs)
    yield
    yield * this.#agent.load()
  }

  #loadRest () {
    clearTimeout(this.#pieceTimer)
    while (!this.#pieces.next().done);
  }

  /**
   * An error ends the agent and never reaches the app.
   * @param {(exitCode: number) => void} work
   * @returns {(exitCode?: any) => void}
   */
  #fenced (work) {
    return exitCode => {
      if (this.#state === STATES.ended) return
      try {
        work(exitCode)
      } catch (error) {
        // A call in here throws as well when the stack is used up.
        attempt(() => this.stop())
        attempt(() => this.#debug('off: %s', error))
      }
    }
  }
}

/**
 * Begins to watch this isolate.
 * @param {import('./protocol/config').Config} config
 * @param {(format: string, ...values: unknown[]) => void} debug
 * @returns {{ stop: () => void }}
 */
function begin (config, debug) {
  return new Beginning(config, debug)
}

module.exports = { begin }

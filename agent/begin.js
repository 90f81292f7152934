'use strict'

const primordials = require('./primordials')
const { startGcs, stopGcs } = require('./collect/gc-start')

const { clearTimeout, nowMs, setTimeout } = primordials

/**
 * The agent only counts GCs while the app starts. It loads everything else in pieces after the
 * loop's first turns: loading all of it at once would block the app for about ten milliseconds.
 */
const LOAD_AFTER_MS = 40
const LOAD_EVERY_MS = 1
/** Least age at the first frame. A process that ends earlier sends nothing. */
const FIRST_FRAME_MS = 100
/** Time after which a busy loop gets all remaining pieces at once. */
const LOADED_AFTER_MS = 1000

/**
 * States of the agent in this isolate. It enters each at most once, in this order.
 *
 *   waiting  the app starts: the agent only counts GCs
 *   loading  after 40 ms: the agent loads one piece each millisecond
 *   running  after all pieces and 100 ms, or after a second: one frame each interval
 *   ended    the process ends, the agent failed, or it was stopped
 *
 * @typedef {'waiting' | 'loading' | 'running' | 'ended'} State
 */

/**
 * Runs one step of stopping. Its error does not prevent the other steps.
 * @param {() => void} work
 */
const attempt = work => {
  try {
    work()
  } catch {}
}

/** Agent from preload to the end of the isolate. */
class Lifecycle {
  primordials = primordials // for later copies of that file
  /** @type {State} */
  #state = 'waiting'
  #beganMs = nowMs()
  #gcs
  #config
  #debug
  /** @type {import('./isolate-agent').Agent | undefined} */
  #agent
  #pieces = this.#load()
  /** Timer of the next state. @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {NodeJS.Timeout | undefined} */
  #pieceTimer
  #onPiece = this.#fenced(() => this.#loadPiece())
  #onExit = this.#fenced(exitCode => this.end(exitCode))

  /**
   * @param {import('./protocol/config').Config} config
   * @param {typeof import('./guard').debug} debug
   */
  constructor (config, debug) {
    this.#gcs = startGcs(config.gcHooks)
    this.#config = config
    this.#debug = debug
    this.#timer = setTimeout(this.#fenced(() => this.#startLoading()), LOAD_AFTER_MS)
    // `once` would remove the listener when called, which throws on a frozen `process`.
    process.on('exit', this.#onExit)
  }

  /** Stops the timers, the counter of GCs and the agent, in any state. */
  stop () {
    this.#state = 'ended'
    clearTimeout(this.#timer)
    clearTimeout(this.#pieceTimer)
    attempt(() => process.removeListener('exit', this.#onExit))
    attempt(() => stopGcs(this.#gcs))
    attempt(() => this.#agent?.stop())
  }

  #startLoading () {
    this.#state = 'loading'
    this.#timer = setTimeout(this.#fenced(() => this.#run()), LOADED_AFTER_MS - LOAD_AFTER_MS)
    this.#loadPiece()
  }

  /** Loads one piece. After the last piece it only waits until the first frame is due. */
  #loadPiece () {
    const isLoaded = this.#pieces.next().done
    const leftMs = this.#beganMs + FIRST_FRAME_MS - nowMs()
    if (isLoaded && leftMs <= 0) return this.#run()
    this.#pieceTimer = setTimeout(this.#onPiece, isLoaded ? leftMs : LOAD_EVERY_MS)
  }

  #run () {
    this.#state = 'running'
    clearTimeout(this.#timer)
    this.#loadRest()
    this.#agent?.run()
  }

  /** Sends a last frame and the `bye` to the exporter. @param {number} exitCode */
  end (exitCode) {
    this.#state = 'ended'
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
      if (this.#state === 'ended') return
      try {
        work(exitCode)
      } catch (error) {
        // After a stack overflow even attempt() throws.
        try {
          attempt(() => this.stop())
          this.#debug('off: %s', error)
        } catch {}
      }
    }
  }
}

module.exports = { Lifecycle }

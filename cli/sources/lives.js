'use strict'

const { rebuildValues } = require('@memwatch/engine/decode/rebuild')
const { plainTexts } = require('@memwatch/engine/decode/plain-texts')
const { Targets } = require('@memwatch/engine/history/targets')
const { processOf } = require('@memwatch/engine/history/identity')
const { evaluate } = require('@memwatch/engine/verdicts/evaluate')
const { capable } = require('./capable')

/**
 * Limit of sessions in one source, enough for an app that restarts all day. Further sessions are
 * only counted, not evaluated.
 */
const MOST_LIVES = 1000

/** Isolates that a source describes. Each becomes a target, as if an agent had sent its frames. */
class Lives {
  #source
  #given
  #onError
  #onVerdict
  #nowUnixMs = 0
  #targets = new Targets({ maxTargets: MOST_LIVES, now: () => this.#nowUnixMs })
  /** @type {import('@memwatch/engine/history/target').Target[]} */
  #ended = []
  /**
   * The newest session of each thread.
   * @type {Map<string, import('@memwatch/engine/history/targets').Session>}
   */
  #sessions = new Map()
  /** Number of sessions left out because of the limit. */
  #refusedLives = 0
  /** Number of frames left out because of values that no agent sends. */
  #refusedFrames = 0
  /**
   * Targets whose process has ended, according to the source.
   * @type {Set<import('@memwatch/engine/history/target').Target>}
   */
  ended = new Set()
  /** Notes of the reader on its input. @type {Set<string>} */
  notes = new Set()

  /**
   * @param {import('./define-source').Source} source
   * @param {import('./define-source').Given} given
   * @param {{ onError?: (error: Error) => void, onVerdict?: (target:
   *   import('@memwatch/engine/history/target').Target, verdict: import('@memwatch/engine/verdicts/evaluate').Verdict) => void
   *   }} [options]
   */
  constructor (source, given, { onError = () => {}, onVerdict = () => {} } = {}) {
    this.#source = source
    this.#given = given
    this.#onError = onError
    this.#onVerdict = onVerdict
    this.#targets.on('end', target => { if (target.frame) this.#ended.push(target) })
  }

  /**
   * @param {Partial<import('@memwatch/agent/protocol/frame').Hello> & { name: string }} known
   * @param {() => import('./bounded').Bounds | undefined} [bounds] returns the bounds of unknown
   *   values at this moment
   * @returns {Life | undefined} undefined beyond the limit
   */
  open (known, bounds) {
    const hello = { type: /** @type {const} */ ('hello'), ...unsaid, ...plainTexts(known), nodeOptions: plainTexts(known.nodeOptions ?? this.#given.nodeOptions ?? []) }
    const thread = `${processOf(hello)}:${hello.threadId}`
    // A restarted container uses the same pids, so an equal id is the next session of the same
    // thread.
    this.#sessions.get(thread)?.closed(false)
    const opened = this.#ended.length < MOST_LIVES && this.#targets.open(hello)
    if (!opened || typeof opened === 'string') {
      this.#refusedLives++
      return undefined
    }
    this.#sessions.set(thread, opened)
    const { target } = opened
    const diagnoses = capable(this.#source, this.#given, bounds)
    let sequence = 0
    return {
      target,
      frame: (uptimeSeconds, values) => {
        this.#nowUnixMs = target.hello.startedAtUnixMs + uptimeSeconds * 1000
        const rebuilt = rebuildValues(values)
        if (!rebuilt) this.#refusedFrames++
        if (
          !rebuilt ||
          opened.frame({
            type: 'frame',
            sequence: ++sequence,
            atUnixMs: this.#nowUnixMs,
            uptimeSeconds,
            values: rebuilt
          })
        ) { return }
        for (const verdict of evaluate(target, { diagnoses, onError: this.#onError })) {
          this.#onVerdict(target, verdict)
        }
      },
      markEnded: () => { this.ended.add(target) },
      close: () =>
        opened.bye({ type: 'bye', sequence: ++sequence, atUnixMs: this.#nowUnixMs, exitCode: 0 })
    }
  }

  /** Sentences about input that was left out. */
  get refusals () {
    return [
      ...(this.#refusedLives > 0
        ? [`${this.#refusedLives} processes were left out: they exceed the limit`]
        : []),
      ...(this.#refusedFrames > 0
        ? [
            `${this.#refusedFrames} readings were left out: their numbers or names are invalid`
          ]
        : [])
    ]
  }

  /**
   * Targets: first the ended ones in the order of their ends, then the others.
   * @returns {import('@memwatch/engine/history/target').Target[]}
   */
  get all () {
    return [...this.#ended, ...this.#targets.all.filter(({ frame }) => frame)]
  }
}

/**
 * @typedef {object} Life
 * @property {import('@memwatch/engine/history/target').Target} target
 * @property {(uptimeSeconds: number, values: import('@memwatch/agent/protocol/frame').Frame['values']) => void}
 *   frame
 * @property {() => void} markEnded called if the source shows the end of the process
 * @property {() => void} close called after the last frame
 */

/**
 * Fields of a hello that the source does not contain. Every Node.js that memwatch
 * supports accepts the two flags in NODE_OPTIONS.
 */
const unsaid = Object.freeze({
  agent: '',
  pid: 0,
  threadId: 0,
  startedAtUnixMs: 0,
  intervalSeconds: 1,
  node: 'unknown',
  v8: 'unknown',
  platform: 'unknown',
  arch: 'unknown',
  libc: /** @type {const} */ ('unknown'),
  allocator: /** @type {const} */ ('unknown'),
  pointerCompression: false,
  execArgv: [],
  mallocEnv: {},
  allowedFlags: ['--max-old-space-size', '--max-semi-space-size']
})

module.exports = { Lives }

'use strict'

const { EventEmitter } = require('node:events')
const { randomUUID } = require('node:crypto')
const { CommandError } = require('../commands/commands')
const { processOf } = require('@memwatch/engine/history/identity')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { CaptureAnalysis } = require('./analysis')
const { kinds } = require('./kinds')
const { RunningCapture } = require('./running-capture')

/**
 * Time that a capture may take beyond its duration, because a blocked app or the transfer of a
 * large heap takes longer.
 */
const PATIENCE_SECONDS = 300
/** Error code of a stream whose other end is gone: node:stream. */
const HUNG_UP = 'ERR_STREAM_PREMATURE_CLOSE'
/** Upper bound of failed captures in memory. */
const MOST_FAILED = 20
/**
 * Least age of a heap profile at its first reading from which this reading is analysed while the
 * profile runs: someone may be waiting for a line of code.
 */
const EARLY_FROM_SECONDS = 5
/** Share of the duration after which the agent reads a heap profile for the first time. */
const FIRST_READING_SHARE = 1 / 3
/** Time without data after which a capture fails. */
const STALLED_MS = 60_000

/**
 * One capture of one isolate, as /api/v1/captures returns it.
 * @typedef {object} Capture
 * @property {string} id
 * @property {import('./kinds').KindName} kind
 * @property {string} target
 * @property {string} thread
 * @property {number} pid
 * @property {string | null} host
 * @property {string} node
 * @property {number} startedAtUnixMs start of the isolate
 * @property {number} seconds requested duration
 * @property {string | null} [rule] name of the rule that caused the capture; null for a requested
 *   capture
 * @property {string | null} diagnosis diagnosis of an automatic capture; null for a requested
 *   capture
 * @property {'running' | 'done' | 'failed'} state
 * @property {string | null} error error as a sentence
 * @property {string | null} errorCode error code, one word
 * @property {number} requestedUnixMs
 * @property {number | null} finishedUnixMs
 * @property {{ part: string, bytes: number, sha256: string }[]} parts
 * @property {boolean} [isPartial] true if the process ended during the capture, and only the data
 *   sent before is stored
 * @property {number | null} [shippedUnixMs] time at which it was sent to --ship-to; null until then
 * @property {import('./suspects').Suspects | null} suspects
 * @property {import('./retainers').Retainers | null} retainers
 */

/**
 * Requests captures from agents, receives and stores them. Emits `done` (capture, target) after
 * success or failure, and before it `reading` (capture, target) once the first reading of a long
 * heap profile has suspects.
 */
class Captures extends EventEmitter {
  #commands
  #store
  #analysis
  #closing = new AbortController()
  #now
  /** @type {Map<string, RunningCapture>} */
  #running = new Map()
  /** Keys of the processes with a running capture. @type {Set<string>} */
  #busy = new Set()
  /** The newest failed captures, oldest first. @type {Capture[]} */
  #failed = []
  /**
   * Heap profiles that began before they were requested.
   * @type {WeakMap<import('@memwatch/engine/history/target').Target, { fromUnixMs: number,
   *   untilUnixMs: number }>}
   */
  #early = new WeakMap()
  /** Ended captures by kind and state. @type {Map<string, number>} */
  counts = new Map()

  /**
   * @param {object} parts
   * @param {import('../commands/commands').Commands} parts.commands
   * @param {import('./store').CaptureStore} parts.store
   * @param {typeof import('./suspects').suspectsOf} parts.suspectsOf
   * @param {typeof import('./retainers').retainersOf} parts.retainersOf
   * @param {() => number} [parts.now] returns Unix time in ms
   */
  constructor ({ commands, store, suspectsOf, retainersOf, now = Date.now }) {
    super()
    this.#commands = commands
    this.#store = store
    const { signal } = this.#closing
    this.#analysis = new CaptureAnalysis({ store, suspectsOf, retainersOf, signal })
    this.#now = now
  }

  /** Newest first. @returns {Capture[]} */
  get all () {
    return [
      ...this.#store.all,
      ...this.#failed,
      ...[...this.#running.values()].map(({ capture }) => capture)
    ].sort((a, b) => b.requestedUnixMs - a.requestedUnixMs)
  }

  /** Bytes on disk. */
  get bytes () {
    return this.#store.bytes
  }

  /**
   * @param {string} id
   * @returns {Capture | undefined}
   */
  get (id) {
    return this.all.find(capture => capture.id === id)
  }

  /** Restores captures that an earlier exporter stored. */
  restore () {
    this.#store.restore()
  }

  /**
   * @param {Capture} capture
   * @param {string} part
   * @returns {import('node:fs').ReadStream | undefined} content of the part; undefined if it no
   *   longer exists
   */
  read ({ id }, part) {
    return this.#store.read(id, part)
  }

  /**
   * @param {Capture} capture
   * @param {string} part
   * @param {number} maxBytes
   * @returns {any} profile as the app sent it, unchecked
   * @throws {Error} if it is larger, not JSON, or does not fit in memory
   */
  profile (capture, part, maxBytes) {
    return this.#analysis.profile(capture, part, maxBytes)
  }

  /**
   * Notes that a capture was sent to --ship-to.
   * @param {string} id
   * @throws {Error} error of the file system; then a later exporter sends the capture again
   */
  markShipped (id) {
    this.#store.change(id, { shippedUnixMs: this.#now() })
  }

  /** @param {string} id */
  remove (id) {
    this.#failed = this.#failed.filter(capture => capture.id !== id)
    this.#store.remove(id)
  }

  /** Resolves when no capture of a target that has ended is being analysed. */
  async idle () {
    const ended = [...this.#running.values()].filter(({ target }) => !target.connected)
    await Promise.all(ended.map(({ finished }) => finished))
  }

  /** Deletes the files that must not outlive this process. */
  close () {
    this.#closing.abort()
    this.#store.close()
  }

  /** Removes expired captures. A timer calls this method. */
  tidy () {
    this.#store.tidy()
  }

  /**
   * Starts a capture. The call returns after the request to the agent; `finished` resolves with the
   * outcome.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {{ kind: import('./kinds').KindName, seconds?: number, intervalBytes?: number, force?:
   *   boolean, diagnosis?: string, rule?: string, names?: import('./rules').CaptureRule['names'],
   *   intervalMicroseconds?: number }} options intervalBytes: mean distance between two samples of
   *   a heap profile, and intervalMicroseconds of a CPU profile; default: the agent's own. names:
   *   see rules.js
   * @returns {{ capture: Capture, finished: Promise<Capture> }} finished never rejects
   * @throws {CommandError} busy, or not_enabled
   */
  request (
    target,
    {
      kind, seconds = kinds[kind].seconds, intervalBytes, intervalMicroseconds, force = false,
      diagnosis, rule, names
    }
  ) {
    const { hello, name, thread } = target
    const process = `${processOf(hello)} ${hello.startTimeTicks}`
    this.#commands.assertTakes(target, 'capture')
    if (this.#busy.has(process)) {
      throw new CommandError(
        'busy',
        `another capture of ${name} is running: a process makes one at a time`
      )
    }
    /** @type {Capture} */
    const capture = {
      id: randomUUID(),
      kind,
      target: name,
      thread,
      pid: hello.pid,
      host: hello.host ?? null,
      node: hello.node,
      startedAtUnixMs: hello.startedAtUnixMs,
      seconds,
      rule: rule ?? null,
      diagnosis: diagnosis ?? null,
      state: 'running',
      error: null,
      errorCode: null,
      requestedUnixMs: this.#now(),
      finishedUnixMs: null,
      parts: [],
      isPartial: false,
      shippedUnixMs: null,
      suspects: null,
      retainers: null
    }
    const running = new RunningCapture(capture, target, this.#takeEarly(target, kind))
    this.#running.set(capture.id, running)
    this.#busy.add(process)
    const given = { intervalBytes, intervalMicroseconds, force }
    const finished = this.#make(running, given, names).finally(() => {
      this.#running.delete(capture.id)
      this.#busy.delete(process)
      const key = `${kind} ${capture.state}`
      this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
      this.emit('done', capture, target)
    }).then(() => capture)
    running.finished = finished
    return { capture, finished }
  }

  /**
   * Handles a connection that transfers a part of a capture.
   * @param {import('@memwatch/engine/decode/decode').CaptureMessage} message
   * @param {import('node:net').Socket} socket
   * @param {Buffer} rest data received together with the line
   * @returns {boolean} false for an unknown capture, or for a part that has already arrived
   */
  take ({ id, part }, socket, rest) {
    const running = this.#running.get(id)
    if (!running || running.arrived.has(part)) return false
    socket.setTimeout(STALLED_MS, () => socket.destroy(new Error('the agent sent nothing for a ' +
      'minute')))
    const written = this.#store.write(id, part, (async function * () {
      if (rest.length > 0) yield rest
      yield * socket
    })())
    // If writing fails, the connection is closed, so that the agent does not wait.
    written.catch(() => socket.destroy())
    running.arrive(part, written)
    const { capture: { seconds }, sampledSeconds } = running
    const age = Math.max(FIRST_READING_SHARE * seconds, sampledSeconds)
    if (part === 'before' && age >= EARLY_FROM_SECONDS) this.#readEarly(running, written)
    return true
  }

  /**
   * Begins a heap profile that a later capture continues. The agent does not read it without one.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {{ seconds: number, intervalBytes: number }} args seconds: it ends after this time
   * @throws {CommandError}
   */
  async sampleHeap (target, args) {
    await this.#commands.carryOut(target, 'sample_heap', { args })
    const fromUnixMs = this.#now()
    this.#early.set(target, { fromUnixMs, untilUnixMs: fromUnixMs + 1000 * args.seconds })
  }

  /**
   * Lets the agent count the slices of the Buffer pool. Its frames have the counts then.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @throws {CommandError}
   */
  async countSlices (target) {
    await this.#commands.carryOut(target, 'count_slices')
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('./kinds').KindName} kind
   * @returns {number} age in seconds of the heap profile that this capture continues; 0 without one
   */
  #takeEarly (target, kind) {
    const early = this.#early.get(target)
    const nowMs = this.#now()
    // The agent ends it with a capture of another kind.
    this.#early.delete(target)
    return kind !== 'heap_profile' || !early || nowMs >= early.untilUnixMs
      ? 0
      : (nowMs - early.fromUnixMs) / 1000
  }

  /**
   * Finds suspects in the first reading of a heap profile. The second reading replaces them.
   * @param {RunningCapture} running
   * @param {Promise<{ bytes: number, sha256: string }>} written
   */
  async #readEarly (running, written) {
    const { capture, target } = running
    /** @type {Capture['suspects']} */
    let suspects
    /** @type {Capture['parts']} */
    let parts
    try {
      const { bytes, sha256 } = await written
      parts = [{ part: 'before', bytes, sha256 }]
      suspects = this.#analysis.findEarlySuspects(capture, target.hello, {
        heapGrowthBytes: running.heapGrowthBytes
      })
    } catch {
      // The end of the capture reports an incomplete reading.
      return
    }
    if (capture.state !== 'running' || !suspects || suspects.sites.length === 0) return
    Object.assign(capture, { parts, suspects })
    this.emit('reading', capture, target)
  }

  /**
   * @param {RunningCapture} running
   * @param {{ intervalBytes?: number, intervalMicroseconds?: number, force: boolean }} given
   *   arguments of the agent's capture
   * @param {import('./rules').CaptureRule['names']} names
   */
  async #make (running, given, names) {
    const { capture, target } = running
    const { kind, seconds, id } = capture
    try {
      const headroomBytes = headroomOf(target)
      const { parts = {} } = await this.#commands.carryOut(target, 'capture', {
        id,
        args: {
          kind,
          seconds,
          ...given,
          ...(headroomBytes !== undefined && { headroomBytes })
        },
        answerWithinMs: 1000 * (2 * seconds + PATIENCE_SECONDS)
      })
      /** @type {Capture['parts']} */
      const complete = []
      for (const [part, sent] of Object.entries(parts)) {
        const { bytes, sha256 } = await running.part(part)
        if (bytes !== sent) {
          throw new Error(`${part}: the agent sent ${sent} bytes, and ${bytes} ` +
          'arrived')
        }
        complete.push({ part, bytes, sha256 })
      }
      capture.parts = complete
      capture.suspects = this.#analysis.findSuspects(capture, target.hello, {
        isWhole: running.sampledSeconds > seconds,
        heap: names === 'inner' ? this.#heapProfilesOf(running) : undefined,
        names,
        heapGrowthBytes: running.heapGrowthBytes
      })
      capture.retainers = await this.#analysis.findRetainers(capture, target.hello)
      this.#keep(capture)
    } catch (error) {
      if (await this.#keepFirstReading(running, target.hello)) return
      const broken = (await Promise.allSettled(running.arrived.values())).flatMap(part =>
        part.status === 'rejected' ? [part.reason] : []
      )
      // After a failed write, the agent only reports a closed connection. The failed write is the
      // actual cause.
      this.#fail(capture, broken.find(({ code }) => code !== HUNG_UP) ?? /** @type {Error} */ (error))
      this.#store.remove(id)
    }
  }

  /**
   * @param {RunningCapture} running
   * @returns {import('./heap-suspects').HeapProfiles | null} the heap profile that names the
   *   present suspects of its diagnosis; null: there is none
   */
  #heapProfilesOf ({ capture: { diagnosis }, target }) {
    const known = findCase(target).suspects.get(diagnosis ?? '')
    const heap = known?.kind === 'heap_profile' ? this.get(known.captureId) : undefined
    return heap?.state === 'done' ? this.#analysis.heapProfiles(heap) : null
  }

  /** @param {Capture} capture a complete capture */
  #keep (capture) {
    capture.state = 'done'
    capture.finishedUnixMs = this.#now()
    this.#store.keep(/** @type {any} */ (capture))
  }

  /**
   * Keeps the first reading of a heap profile whose process died. A process sends this reading
   * after a third of the time. It is also a profile, and usually the last evidence of the leak.
   * @param {RunningCapture} running
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   * @returns {Promise<boolean>} false if no reading arrived, or if it is incomplete
   */
  async #keepFirstReading ({ capture, arrived }, hello) {
    const { id } = capture
    await Promise.allSettled(arrived.values())
    try {
      const { bytes, sha256 } = /** @type {{ bytes: number, sha256: string }} */ (
        await arrived.get('before'))
      this.#store.renamePart(id, 'before', 'profile')
      capture.parts = [{ part: 'profile', bytes, sha256 }]
      // This throws if the reading is incomplete.
      capture.suspects = this.#analysis.findSuspects(capture, hello)
      if (!capture.suspects) return false
      capture.isPartial = true
      this.#keep(capture)
      return true
    } catch {
      capture.parts = []
      return false
    }
  }

  /**
   * @param {Capture} capture
   * @param {Error} error
   */
  #fail (capture, error) {
    Object.assign(capture, {
      state: 'failed',
      finishedUnixMs: this.#now(),
      parts: [],
      error: error.message,
      errorCode: error instanceof CommandError ? error.code : 'failed'
    })
    this.#failed.push(capture)
    if (this.#failed.length > MOST_FAILED) this.#failed.shift()
  }
}

/**
 * Free memory of the container.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {number | undefined} undefined without a limit
 */
function headroomOf ({ values }) {
  const { containerLimitBytes, containerWorkingSetBytes = 0, rssBytes = 0 } = values
  return containerLimitBytes === undefined
    ? undefined
    : Math.max(0, containerLimitBytes - Math.max(containerWorkingSetBytes, rssBytes))
}

module.exports = { Captures }

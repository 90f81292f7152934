'use strict'

const { EventEmitter } = require('node:events')
const { wellFormed } = require('../text/json')
const { DOWN_INTERVALS, countIntervals } = require('./silence')
const { identityOf, processOf } = require('./identity')
const { Target } = require('./target')
const { addNeighbours, addOtherThreads, memoryContainerOf } = require('./neighbours')
const { addWorkers } = require('./workers')

/**
 * Time for which a target that vanished without a goodbye stays visible as down, so that an alert
 * can fire.
 */
const FORGET_AFTER_MS = 300_000
/**
 * Upper bounds of senior targets, per pod and in all. The first targets become senior. The exporter
 * reads their frames under any load, so that later targets cannot cost them a frame, however many
 * connect.
 */
const MOST_SENIORS_OF_POD = 16
const MOST_SENIORS = 256
/**
 * Upper bound of the lists of flags in the shared cache, which has one list per version of Node.js.
 */
const MOST_FLAG_LISTS = 16

/**
 * Connection of one agent, after its hello.
 * @typedef {object} Session
 * @property {Target} target
 * @property {() => void} heard to be called for each line of the connection, of any kind
 * @property {(frame: import('../decode/decode').FrameMessage) => RejectReason | undefined} frame
 * @property {(bye: Partial<import('../decode/decode').ByeMessage> & { exitCode: number }) => void} bye
 * @property {(answer: import('../decode/decode').AnswerMessage) => void} answer
 * @property {(timedOut: boolean) => void} closed to be called when the connection ends, with or
 *   without a goodbye; timedOut: the peer stopped responding
 *
 * @typedef {import('../decode/decode').RejectReason} RejectReason
 */

/**
 * All watched targets. Events, and their arguments:
 *
 * - `open` (target)
 * - `next` (target): the target is about to receive a frame
 * - `frame` (target): the target has accepted a frame
 * - `answer` (target, answer): the answer to a command
 * - `vanish` (target, timedOut, wasAway): the connection ended without a goodbye. timedOut: the
 *   connection timed out; wasAway: the exporter itself was away
 * - `back` (target): the target has reconnected
 * - `end` (target, cause): once, when the target has said goodbye, was replaced by its successor or
 *   was forgotten
 *
 * @typedef {'bye' | 'replaced' | 'forgotten'} EndCause
 */
class Targets extends EventEmitter {
  #maxTargets
  #now
  #sightOf
  /** @type {Map<string, Target>} by identity: pid, thread and start */
  #byIdentity = new Map()
  /** Living targets of each pod, by its UID. @type {Map<string | undefined, number>} */
  #countByPod = new Map()
  #seniors = 0
  /** Threads of each process. @type {Map<string, Set<Target>>} */
  #byProcess = new Map()
  /** Main threads of each container. @type {Map<string, Set<Target>>} */
  #byContainer = new Map()
  /**
   * Lists of hundreds of flags that all processes of a Node.js version share, by their text. The
   * most recently used list is the last entry.
   * @type {Map<string, string[]>}
   */
  #flagLists = new Map()

  /**
   * @param {object} options
   * @param {() => number} options.now returns Unix time in ms that never jumps
   * @param {number} [options.maxTargets]
   * @param {(target: Target) => 'lives' | 'gone' | undefined} [options.sightOf] reads the state of
   *   the target's process in the kernel, if the exporter can
   */
  constructor ({ now, maxTargets = 4096, sightOf = () => undefined }) {
    super()
    this.#maxTargets = maxTargets
    this.#now = now
    this.#sightOf = sightOf
  }

  /** Upper bound of targets watched at once. */
  get max () {
    return this.#maxTargets
  }

  /** @returns {Target[]} */
  get all () {
    return [...this.#byIdentity.values()]
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   * @returns {boolean} true if the identity is that of a watched target
   */
  has (hello) {
    return this.#byIdentity.has(identityOf(hello))
  }

  /**
   * Opens a target for a hello, or continues an existing target after a lost connection.
   * @param {import('../decode/decode').HelloMessage} hello
   * @param {(line: string) => void} [send] sends to the agent; a recording has no agent to send to
   * @param {{ maxOfPod?: number }} [options] upper bound of targets per pod UID
   * @returns {Session | 'too_many_targets' | 'identity_in_use'}
   */
  open (hello, send, { maxOfPod = Infinity } = {}) {
    const identity = identityOf(hello)
    const known = this.#sameThread(hello)
    if (known && this.#isInUse(known)) return 'identity_in_use'
    let target = this.#byIdentity.get(identity)
    if (target) {
      target.connected = true
      // The commands that an agent accepts depend on the connection.
      Object.assign(target.hello, { commands: hello.commands, nonce: hello.nonce })
      this.emit('back', target)
    } else {
      if (this.#byIdentity.size >= this.#maxTargets) return 'too_many_targets'
      const countOfPod = this.#countByPod.get(hello.pod?.uid) ?? 0
      if (countOfPod >= maxOfPod) return 'too_many_targets'
      // Another program runs in the same process, as after process.execve().
      if (known) this.#end(identityOf(known.hello), known, 'replaced')
      this.#endPredecessors(hello)
      this.#share(hello)
      target = new Target({ hello, name: this.#nameFor(hello), thread: this.#threadFor(hello) })
      target.isSenior = countOfPod < MOST_SENIORS_OF_POD && this.#seniors < MOST_SENIORS
      if (target.isSenior) this.#seniors++
      this.#countByPod.set(hello.pod?.uid, countOfPod + 1)
      this.#add(identity, target)
      this.emit('open', target)
    }
    target.seenAtUnixMs = target.heardAtUnixMs = this.#now()
    target.send = send
    target.session = this.#session(identity, target)
    return target.session
  }

  /**
   * Finds the target of a thread. A process has one main thread, and never reuses a thread id.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #sameThread (hello) {
    return [...(this.#byProcess.get(processOf(hello)) ?? [])].find(
      ({ hello: { threadId } }) => threadId === hello.threadId
    )
  }

  /**
   * True if a new connection cannot come from this target's agent. Either the old connection still
   * delivers lines, and an agent closes its connection before it reconnects, or the process is
   * gone.
   * @param {Target} target
   */
  #isInUse (target) {
    const silentSeconds = (this.#now() - target.heardAtUnixMs) / 1000
    const intervals = countIntervals(silentSeconds, target.hello)
    if (target.session && intervals < DOWN_INTERVALS) return true
    return this.#sightOf(target) === 'gone'
  }

  /**
   * Shares one list of flags between all targets with the same flags: the list is most of a hello.
   * @param {import('../decode/decode').HelloMessage} hello
   */
  #share (hello) {
    const text = hello.allowedFlags.join(' ')
    const known = this.#flagLists.get(text) ?? hello.allowedFlags
    this.#flagLists.delete(text)
    this.#flagLists.set(text, known)
    hello.allowedFlags = known
    if (this.#flagLists.size > MOST_FLAG_LISTS) this.#flagLists.delete(/** @type {string} */ (this.#flagLists.keys().next().value))
  }

  /**
   * Opens a target that a previous exporter watched. It counts as vanished until its agent
   * reconnects.
   * @param {{ hello: import('@memwatch/agent/protocol/frame').Hello, name: string, thread: string }} known
   * @param {(target: Target) => void} fill fills the target with its saved history
   */
  restore ({ hello, name, thread }, fill) {
    const identity = identityOf(hello)
    if (this.#byIdentity.has(identity) || this.#byIdentity.size >= this.#maxTargets) return
    const target = new Target({ hello, name, thread })
    target.connected = false
    target.seenAtUnixMs = this.#now()
    fill(target)
    this.#add(identity, target)
    this.emit('open', target)
    this.emit('vanish', target, false, true)
  }

  /**
   * Forgets targets that vanished long ago. A timer calls this method, because expiry must not
   * depend on scrapes.
   */
  expire () {
    for (const [identity, target] of this.#byIdentity) {
      if (!target.connected && this.#now() - target.seenAtUnixMs > FORGET_AFTER_MS) {
        this.#end(identity, target, 'forgotten')
      }
    }
  }

  /**
   * @param {string} identity
   * @param {Target} target
   * @returns {Session} ignored once another connection has taken over the target
   */
  #session (identity, target) {
    const isOurs = () => target.session === session
    const workersOf = this.#workersOf(target)
    const neighboursOf = this.#neighboursOf(target)
    /** @type {Session} */
    const session = {
      target,
      heard: () => { if (isOurs()) target.heardAtUnixMs = this.#now() },
      frame: frame => {
        if (!isOurs()) return 'hello_missing'
        this.emit('next', target)
        if (!target.take(frame, this.#now(), workersOf(), neighboursOf())) return 'out_of_order'
        this.emit('frame', target)
      },
      bye: bye => {
        if (!isOurs()) return
        target.exitCode = bye.exitCode
        this.#end(identity, target, 'bye')
      },
      answer: answer => { if (isOurs()) this.emit('answer', target, answer) },
      closed: timedOut => {
        if (!isOurs()) return
        target.connected = false
        target.session = target.send = undefined
        this.emit('vanish', target, timedOut)
      }
    }
    return session
  }

  /**
   * Reader of the workers' memory for a main thread. Each worker reports only its own memory.
   * @param {Target} target a watched target: the set of its process exists as long as it is watched
   * @returns {() => import('./tracks').Workers | undefined} a function to be called once per frame
   */
  #workersOf ({ hello }) {
    if (hello.threadId !== 0) return () => undefined
    const threads = this.#threadsOf(hello)
    return () => threads.size === 1 ? undefined : addWorkers(threads)
  }

  /**
   * @param {Target} target a watched target: the set of its container exists as long as it is
   *   watched
   * @returns {() => import('./tracks').Neighbours | undefined} a function to be called once per
   *   frame
   */
  #neighboursOf (target) {
    if (target.hello.threadId > 0) {
      const threads = this.#threadsOf(target.hello)
      return () =>
        addOtherThreads([...threads].find(({ hello }) => hello.threadId === 0), target)
    }
    const container = target.hello.threadId === 0 ? memoryContainerOf(target.hello) : undefined
    const processes = container === undefined ? undefined : this.#byContainer.get(container)
    if (!processes) return () => undefined
    return () => processes.size > 1 ? addNeighbours(processes, target) : undefined
  }

  /**
   * @param {string} identity
   * @param {Target} target newly opened
   */
  #add (identity, target) {
    this.#byIdentity.set(identity, target)
    this.#threadsOf(target.hello).add(target)
    const container = target.hello.threadId === 0 ? memoryContainerOf(target.hello) : undefined
    if (container === undefined) return
    const processes = this.#byContainer.get(container)
    if (processes) processes.add(target)
    else this.#byContainer.set(container, new Set([target]))
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello of a newly opened target
   * @returns {Set<Target>} targets of its process; the caller adds to it
   */
  #threadsOf (hello) {
    const process = processOf(hello)
    let threads = this.#byProcess.get(process)
    if (!threads) this.#byProcess.set(process, threads = new Set())
    return threads
  }

  /** @param {string | undefined} podUid UID of the pod of a target that has ended */
  #countDown (podUid) {
    const count = (this.#countByPod.get(podUid) ?? 0) - 1
    if (count > 0) this.#countByPod.set(podUid, count)
    else this.#countByPod.delete(podUid)
  }

  /**
   * @param {string} identity
   * @param {Target} target
   * @param {EndCause} cause
   */
  #end (identity, target, cause) {
    if (this.#byIdentity.get(identity) !== target) return
    this.#byIdentity.delete(identity)
    this.#countDown(target.hello.pod?.uid)
    if (target.isSenior) this.#seniors--
    const threads = this.#byProcess.get(processOf(target.hello))
    threads?.delete(target)
    if (threads?.size === 0) this.#byProcess.delete(processOf(target.hello))
    const container = memoryContainerOf(target.hello)
    const processes = container === undefined ? undefined : this.#byContainer.get(container)
    processes?.delete(target)
    if (container !== undefined && processes?.size === 0) this.#byContainer.delete(container)
    target.connected = false
    target.session = target.send = undefined
    this.emit('end', target, cause)
  }

  /**
   * Ends the predecessor of a starting process. A process that starts with the name and pod of a
   * disconnected process is its successor, unless the kernel shows that the old process is alive.
   * The predecessor ends with all its threads; the hello of a worker may arrive before that of its
   * main thread.
   *
   * A terminated worker vanishes without a goodbye. A new worker replaces a vanished one, so that
   * targets do not pile up in pools that restart their workers.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #endPredecessors (hello) {
    const vanished =
      hello.threadId !== 0 &&
      [...(this.#byProcess.get(processOf(hello)) ?? [])].find(
        ({ connected, thread }) => !connected && thread !== 'main'
      )
    if (vanished) this.#end(identityOf(vanished.hello), vanished, 'replaced')
    const isNewProcess = !this.#byProcess.get(processOf(hello))?.size
    for (const [identity, target] of this.#byIdentity) {
      const isNamesake =
        !target.connected &&
        target.hello.name === hello.name &&
        (isNewProcess || target.hello.threadId === hello.threadId) &&
        target.hello.pod?.uid === hello.pod?.uid
      if (isNamesake && this.#sightOf(target) !== 'lives') {
        this.#end(identity, target, 'replaced')
      }
    }
  }

  /**
   * Name of a process, shared by its threads. A second process of the same app gets the lowest free
   * number. If a worker reports before the main thread, its own name holds until then.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #nameFor (hello) {
    const siblings = this.#threadsOf(hello)
    const [sibling] = siblings
    if (sibling && (hello.threadId > 0 || sibling.hello.name === hello.name)) return sibling.name
    const others = this.all.filter(target => !siblings.has(target))
    const taken = new Set(others.map(target => target.name))
    for (let number = 1; ; number++) {
      // Names that differ only in lone surrogates are equal once written as UTF-8, and their series
      // would collide.
      const name = wellFormed(number === 1 ? hello.name : `${hello.name}-${number}`)
      if (taken.has(name)) continue
      for (const target of siblings) target.name = name
      return name
    }
  }

  /**
   * Name of a worker's thread. Thread ids only grow. The set of label values must not grow with
   * them, so a worker gets the lowest free number.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #threadFor (hello) {
    if (hello.threadId === 0) return 'main'
    const taken = new Set([...this.#threadsOf(hello)].map(({ thread }) => thread))
    for (let place = 1; ; place++) {
      if (!taken.has(`worker-${place}`)) return `worker-${place}`
    }
  }
}

module.exports = { Targets }

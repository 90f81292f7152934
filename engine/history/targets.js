'use strict'

const { EventEmitter } = require('node:events')
const { wellFormed } = require('../text/json')
const { DOWN_INTERVALS, countIntervals } = require('./silence')
const { identityOf, processOf } = require('./identity')
const { Target } = require('./target')
const { addNeighbours, memoryContainerOf } = require('./neighbours')
const { addWorkers } = require('./workers')

/**
 * How long a target that vanished without a bye stays visible as down, so that an alert can say so.
 */
const FORGET_AFTER_MS = 300_000
/**
 * Targets whose frames are read on every level of load: the first of each pod, and the first of
 * all. Those that come later, in whatever number, cost them no frame.
 */
const MOST_SENIORS_OF_POD = 16
const MOST_SENIORS = 256
/** Lists of flags that are shared: each version of Node.js has one. */
const MOST_FLAG_LISTS = 16

/**
 * A connection of one agent, after its hello.
 * @typedef {object} Session
 * @property {Target} target
 * @property {() => void} heard its connection said something, whatever it was
 * @property {(frame: import('../decode/decode').FrameMessage) => RejectReason | undefined} frame
 * @property {(bye: Partial<import('../decode/decode').ByeMessage> & { exitCode: number }) => void} bye
 * @property {(answer: import('../decode/decode').AnswerMessage) => void} answer
 * @property {(timedOut: boolean) => void} closed the connection ended, with or without a bye;
 *   timedOut: nobody answered any more
 *
 * @typedef {import('../decode/decode').RejectReason} RejectReason
 */

/**
 * All targets that are watched now. Emits `open` (target), `next` (target) before a frame of it is
 * taken and `frame` (target) after that, `answer` (target, answer to a command), `vanish` (target,
 * whether its connection timed out, whether no exporter was looking) when the connection ended
 * without a goodbye, `back` (target) when it is there again, and `end` (target, why) – the last
 * once, when a target said goodbye, was replaced by its successor, or was forgotten.
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
  /** The threads of each process. @type {Map<string, Set<Target>>} */
  #byProcess = new Map()
  /** The main threads of each container. @type {Map<string, Set<Target>>} */
  #byContainer = new Map()
  /**
   * Hundreds of flags that all processes of a Node.js have in common, by their text; the list that
   * was used last is the last.
   * @type {Map<string, string[]>}
   */
  #flagLists = new Map()

  /**
   * @param {object} options
   * @param {() => number} options.now Unix time in ms that never jumps
   * @param {number} [options.maxTargets]
   * @param {(target: Target) => 'lives' | 'gone' | undefined} [options.sightOf] what the kernel
   *   says of its process, where it can be asked
   */
  constructor ({ now, maxTargets = 4096, sightOf = () => undefined }) {
    super()
    this.#maxTargets = maxTargets
    this.#now = now
    this.#sightOf = sightOf
  }

  /** Most that are watched at once. */
  get max () {
    return this.#maxTargets
  }

  /** @returns {Target[]} */
  get all () {
    return [...this.#byIdentity.values()]
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   * @returns {boolean} whether it is that of a target which is watched already
   */
  has (hello) {
    return this.#byIdentity.has(identityOf(hello))
  }

  /**
   * A hello opens a target, or continues the one it belongs to after a lost connection.
   * @param {import('../decode/decode').HelloMessage} hello
   * @param {(line: string) => void} [send] to the agent; a recording has none to send to
   * @param {{ maxOfPod?: number }} [options] most of one pod, by its UID
   * @returns {Session | 'too_many_targets' | 'identity_in_use'}
   */
  open (hello, send, { maxOfPod = Infinity } = {}) {
    const identity = identityOf(hello)
    const known = this.#sameThread(hello)
    if (known && this.#isInUse(known)) return 'identity_in_use'
    let target = this.#byIdentity.get(identity)
    if (target) {
      target.connected = true
      // What an agent accepts depends on the connection.
      Object.assign(target.hello, { commands: hello.commands, nonce: hello.nonce })
      this.emit('back', target)
    } else {
      if (this.#byIdentity.size >= this.#maxTargets) return 'too_many_targets'
      const countOfPod = this.#countByPod.get(hello.pod?.uid) ?? 0
      if (countOfPod >= maxOfPod) return 'too_many_targets'
      // Another program in the same process, as after process.execve().
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
   * The target of a thread: a process has one main thread, and uses no thread id twice.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #sameThread (hello) {
    return [...(this.#byProcess.get(processOf(hello)) ?? [])].find(
      ({ hello: { threadId } }) => threadId === hello.threadId
    )
  }

  /**
   * Whether nobody else can be this target. Its connection is open and says something: an agent
   * hangs up before it connects again. Or its process is gone.
   * @param {Target} target
   */
  #isInUse (target) {
    const silentSeconds = (this.#now() - target.heardAtUnixMs) / 1000
    const intervals = countIntervals(silentSeconds, target.hello)
    if (target.session && intervals < DOWN_INTERVALS) return true
    return this.#sightOf(target) === 'gone'
  }

  /**
   * Keep one list of flags for all that have the same: it is most of a hello.
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
   * A target that an exporter before this one watched: it counts as vanished until its agent is
   * back.
   * @param {{ hello: import('@memwatch/agent/protocol/frame').Hello, name: string, thread: string }} known
   * @param {(target: Target) => void} fill with what was kept
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
   * Forget those that vanished long ago. Called on a timer: expiry must not depend on being
   * scraped.
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
   * @returns {Session} one that another has taken the place of is
   *   heard no more
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
   * What the workers of a main thread hold; of a worker nothing is known but its own.
   * @param {Target} target that is watched: the set of its process is there as long as it is
   * @returns {() => import('./tracks').Workers | undefined} asked once a frame
   */
  #workersOf ({ hello }) {
    if (hello.threadId !== 0) return () => undefined
    const threads = this.#threadsOf(hello)
    return () => threads.size === 1 ? undefined : addWorkers(threads)
  }

  /**
   * @param {Target} target that is watched: the set of its container is there as long as it is
   * @returns {() => import('./tracks').Neighbours | undefined} asked once a frame
   */
  #neighboursOf (target) {
    const container = target.hello.threadId === 0 ? memoryContainerOf(target.hello) : undefined
    const processes = container === undefined ? undefined : this.#byContainer.get(container)
    if (!processes) return () => undefined
    return () => processes.size > 1 ? addNeighbours(processes, target) : undefined
  }

  /**
   * @param {string} identity
   * @param {Target} target that is opened
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
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello of a target that is opened
   * @returns {Set<Target>} those of its process, to be added to
   */
  #threadsOf (hello) {
    const process = processOf(hello)
    let threads = this.#byProcess.get(process)
    if (!threads) this.#byProcess.set(process, threads = new Set())
    return threads
  }

  /** @param {string | undefined} podUid of a target that is gone */
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
   * A process of the same name that starts while its namesake has no connection is its successor,
   * where both are of the same pod and the kernel does not show that the old one lives: it is over
   * with all its threads, the first of which may be heard of before its main thread.
   * A worker takes the place of one that vanished, as one does that is terminated: pools that
   * restart theirs must not pile up.
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
   * The threads of one process share its name; a second process of the same app gets the lowest
   * free number.
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   */
  #nameFor (hello) {
    const [sibling] = this.#threadsOf(hello)
    if (sibling) return sibling.name
    const taken = new Set(this.all.map(target => target.name))
    for (let number = 1; ; number++) {
      // Written as UTF-8, names that differ in lone surrogates only would be one series.
      const name = wellFormed(number === 1 ? hello.name : `${hello.name}-${number}`)
      if (!taken.has(name)) return name
    }
  }

  /**
   * Thread ids only grow, label values must not: workers are numbered by the lowest free place.
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

'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { options } = require('@memwatch/agent/protocol/config')
const { CommandError } = require('../commands/commands')
const { findNodeProcesses } = require('../process/process-view')
const { Turns } = require('../turns')
const { attach, checkAgentFiles } = require('./attachment')
const { checkExporter, checkSocketAccess } = require('./exporter-socket')
const { NotFound, Refusal } = require('./refusal')
const { Subject } = require('./subject')

/** Time limit for the first frame of an attached agent. */
const HEARD_MS = 5000
const POLL_MS = 50
/**
 * Longest time for which a stopping exporter waits for an attempt. If the attempt takes longer, the
 * target process closes its inspector by itself.
 */
const STOP_WITHIN_MS = 5000

/** Reasons for an attempt. @type {readonly ['request', 'annotation']} */
const TRIGGERS = Object.freeze(['request', 'annotation'])
/** @type {readonly ['attached', 'refused', 'failed']} */
const OUTCOMES = Object.freeze(['attached', 'refused', 'failed'])

/**
 * A Node.js process without an agent that reports to this exporter.
 * @typedef {object} UnwatchedProcess
 * @property {number} pid pid in the exporter's process namespace
 * @property {number} startTimeTicks start time, which together with the pid identifies the process
 * @property {string} name text for people, such as: process 7 (node server.js)
 * @property {number} startedAtUnixMs
 * @property {string | null} refusal reason why memwatch cannot attach, a sentence; null if it can
 *
 * @typedef {object} Attached
 * @property {number} pid
 * @property {string} name text for people
 * @property {string} node version
 * @property {import('./attachment').Workers} workers
 * @property {string | null} target name of its target; null until its first frame
 */

/**
 * Attaches the agent to running processes, one at a time. Without a request it only reads /proc.
 */
class Attacher {
  #targets
  #socket
  #folder
  #attach
  /** @type {Promise<unknown> | undefined} */
  #running
  /** @type {Promise<UnwatchedProcess[]> | undefined} */
  #listing
  #isOver = false
  /**
   * Number of attempts by trigger and outcome, such as `request attached`.
   * @type {Map<string, number>}
   */
  counts = new Map(TRIGGERS.flatMap(trigger =>
    OUTCOMES.map(outcome => [`${trigger} ${outcome}`, 0])))

  /**
   * @param {object} exporter
   * @param {() => import('@memwatch/engine/history/target').Target[]} exporter.targets
   * @param {string} exporter.socket address of the exporter, for processes without MEMWATCH_SOCKET
   * @param {string} [exporter.folder] folder of the agent, as processes see it; default: the
   *   exporter's own agent
   * @param {typeof attach} [exporter.attach]
   */
  constructor ({ targets, socket, folder, attach: attachAgent = attach }) {
    this.#targets = targets
    this.#socket = socket
    this.#folder = folder
    this.#attach = attachAgent
  }

  /**
   * Lists processes without an agent, and sends nothing to them. Simultaneous requests share one
   * answer.
   * @returns {Promise<UnwatchedProcess[]>} processes, the newest first
   */
  list () {
    this.#listing ??= this.#list().finally(() => { this.#listing = undefined })
    return this.#listing
  }

  /** @returns {Promise<UnwatchedProcess[]>} */
  async #list () {
    const turns = new Turns()
    const found = []
    for (const pid of findNodeProcesses()) {
      if (turns.over) await turns.next()
      const subject = this.look(pid)
      if (!subject?.isApp || this.hasAgent(subject)) continue
      const { startTimeTicks, name, startedAtUnixMs } = subject
      found.push({ pid, startTimeTicks, name, startedAtUnixMs, refusal: this.#refusalOf(subject) })
    }
    return found.sort((a, b) => b.startedAtUnixMs - a.startedAtUnixMs)
  }

  /**
   * @param {number} pid
   * @returns {Subject | undefined} undefined if the process has ended
   */
  look (pid) {
    try {
      return new Subject(pid)
    } catch {
      return undefined
    }
  }

  /**
   * @param {Subject} subject
   * @returns {boolean} true if its agent is connected to this exporter
   */
  hasAgent (subject) {
    return this.#targetOf(subject)?.connected ?? false
  }

  /**
   * @param {number} pid
   * @param {object} options
   * @param {typeof TRIGGERS[number]} options.trigger
   * @param {number} [options.startTimeTicks] start time of the intended process; the attempt fails
   *   if another process has its pid now
   * @returns {Promise<Attached>}
   * @throws {CommandError} busy, unknown_process, or not_attachable
   */
  async attach (pid, { trigger, startTimeTicks }) {
    if (this.#running || this.#isOver) {
      throw new CommandError('busy', 'the exporter is attaching to another process: try again in ' +
        'a moment')
    }
    const running = this.#running = this.#attachTo(pid, startTimeTicks)
    try {
      const attached = await running
      this.#count(trigger, 'attached')
      return attached
    } catch (error) {
      const { message } = /** @type {Error} */ (error)
      this.#count(trigger, error instanceof Refusal ? 'refused' : 'failed')
      if (error instanceof Refusal) throw new CommandError('not_attachable', message)
      if (error instanceof NotFound) throw new CommandError('unknown_process', message)
      throw error
    } finally {
      this.#running = undefined
    }
  }

  /** Begins no further attempt, and waits some seconds for the running one. */
  async stop () {
    this.#isOver = true
    const within = wait(STOP_WITHIN_MS, undefined, { ref: false })
    await Promise.race([this.#running?.catch(() => {}), within])
  }

  /**
   * @param {typeof TRIGGERS[number]} trigger
   * @param {typeof OUTCOMES[number]} outcome
   */
  #count (trigger, outcome) {
    const key = `${trigger} ${outcome}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
  }

  /**
   * @param {number} pid
   * @param {number} [startTimeTicks]
   * @returns {Promise<Attached>}
   */
  async #attachTo (pid, startTimeTicks) {
    const subject = new Subject(pid)
    if (startTimeTicks !== undefined && startTimeTicks !== subject.startTimeTicks) {
      throw new NotFound(`the process ${pid} has ended, and another one has its id`)
    }
    const socket = this.#check(subject)
    await checkExporter(subject, socket)
    const { node, workers } = await this.#attach(subject, { socket, folder: this.#folder })
    for (const began = performance.now(); performance.now() - began < HEARD_MS;) {
      if (this.#targetOf(subject)?.frame) break
      await wait(POLL_MS)
    }
    const target = this.#targetOf(subject)?.name ?? null
    return { pid, name: subject.name, node, workers, target }
  }

  /**
   * Checks everything that can be checked without a connection or a signal.
   * @param {Subject} subject
   * @returns {string} address of the exporter, as the process sees it
   * @throws {Refusal}
   */
  #check (subject) {
    if (!subject.isApp) subject.refuse('is memwatch itself')
    if (this.hasAgent(subject)) subject.refuse('has an agent already')
    if (subject.preloadsAgent) {
      subject.refuse(
        'preloads the agent, which does not report to this exporter: memwatch doctor ' +
          `${subject.pid} finds the reason`
      )
    }
    subject.check()
    const socket = subject.env?.[options.socket.env] || this.#socket
    try {
      options.socket.read(socket)
    } catch (error) {
      subject.refuse(`has a wrong ${options.socket.env}: ${/** @type {Error} */ (error).message}`)
    }
    checkAgentFiles(subject, this.#folder)
    checkSocketAccess(subject, socket)
    return socket
  }

  /**
   * @param {Subject} subject
   * @returns {string | null} a sentence
   */
  #refusalOf (subject) {
    try {
      this.#check(subject)
      return null
    } catch (error) {
      if (error instanceof Refusal) return error.message
      return `${subject.name} has ended`
    }
  }

  /**
   * @param {Subject} subject
   * @returns {import('@memwatch/engine/history/target').Target | undefined} target of the process's
   *   main thread
   */
  #targetOf ({ ownPid, startTimeTicks }) {
    return this.#targets().find(({ hello, thread }) =>
      thread === 'main' && hello.pid === ownPid && hello.startTimeTicks === startTimeTicks)
  }
}

module.exports = { Attacher, TRIGGERS, OUTCOMES }

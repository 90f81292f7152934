'use strict'

const { CommandError } = require('../commands/commands')
const { findNodeProcesses } = require('../process/process-view')
const { Turns } = require('../turns')
const { annotation } = require('./annotation')
const { Refusal } = require('./refusal')

/**
 * A process older than this has installed its signal listeners, and has started its own agent if it
 * has one.
 */
const SETTLED_MS = 10_000

/**
 * Attaches to processes that ask for it by MEMWATCH_ATTACH, once in the life of each process. It
 * does not try again after a refusal, or after the agent was stopped.
 */
class AnnotatedProcesses {
  #attacher
  #log
  #now
  /** Living processes that need no further attempt. @type {Set<string>} */
  #decided = new Set()

  /**
   * @param {object} options
   * @param {import('./attacher').Attacher} options.attacher
   * @param {Pick<import('pino').Logger, 'info' | 'warn'>} options.log
   * @param {() => number} [options.now] returns Unix time in ms
   */
  constructor ({ attacher, log, now = Date.now }) {
    this.#attacher = attacher
    this.#log = log
    this.#now = now
  }

  /**
   * Attaches to the processes one after the other. The caller waits for the end of a scan before it
   * starts the next one.
   * @param {() => boolean} [goesOn] returns false to attach to no further process
   */
  async scan (goesOn = () => true) {
    const turns = new Turns()
    const living = new Set()
    for (const pid of findNodeProcesses()) {
      if (turns.over) await turns.next()
      const subject = this.#attacher.look(pid)
      if (!subject?.isApp) continue
      const key = `${pid} ${subject.startTimeTicks}`
      living.add(key)
      if (this.#decided.has(key) || !goesOn()) continue
      if (this.#now() - subject.startedAtUnixMs < SETTLED_MS) continue
      if (await this.#decide(subject)) this.#decided.add(key)
    }
    for (const key of this.#decided) if (!living.has(key)) this.#decided.delete(key)
  }

  /**
   * @param {import('./subject').Subject} subject
   * @returns {Promise<boolean>} false if another attempt follows
   */
  async #decide (subject) {
    const { pid, name, startTimeTicks } = subject
    try {
      if (this.#attacher.hasAgent(subject) || !isAsked(subject)) return true
      const { target } = await this.#attacher.attach(pid, { trigger: 'annotation', startTimeTicks })
      this.#log.info({ pid, target }, `attached to ${name}, which asks for it by ${annotation.env}`)
    } catch (error) {
      if (!(error instanceof CommandError || error instanceof Refusal)) throw error
      // Another attempt, by a request, is running.
      if (error instanceof CommandError && error.code === 'busy') return false
      this.#log.warn({ pid }, `not attached, no further attempt: ${error.message}`)
    }
    return true
  }
}

/**
 * @param {import('./subject').Subject} subject
 * @throws {Refusal} if the value of the variable is invalid
 */
function isAsked (subject) {
  const text = subject.env?.[annotation.env] || annotation.default
  try {
    return annotation.read(text)
  } catch (error) {
    const { message } = /** @type {Error} */ (error)
    return subject.refuse(`has a wrong ${annotation.env}: ${message}`)
  }
}

module.exports = { AnnotatedProcesses }

'use strict'

const { randomUUID } = require('node:crypto')
const { PROTOCOL_VERSION } = require('memwatch/frame')
const { proofOf } = require('memwatch/proof')

/** An app that is blocked answers when it is not. */
const ANSWER_WITHIN_MS = 30_000

/** A command that was not carried out. `code` says why, in a word that the API repeats. */
class CommandError extends Error {
  /** @param {'not_enabled' | 'not_connected' | 'no_answer' | 'too_soon' | 'not_supported' | 'not_trusted' | 'unknown_command' | 'refused'} code @param {string} message */
  constructor (code, message) {
    super(message)
    this.code = code
  }
}

/** @type {Record<string, string>} */
const REFUSALS = {
  too_soon: 'the agent gave memory back less than ten seconds ago: it does so no more often',
  not_supported: 'the malloc of this process has no such call',
  not_trusted: 'the agent does not trust this: others may write to the folder of its socket, so agent and exporter need a shared token (MEMWATCH_TOKEN_FILE), the same for both',
  unknown_command: 'the agent does not know this command: it is of an older version'
}

/** Sends commands to agents that take them, and waits for the answers. */
class Commands {
  /** @type {Map<string, (answer: import('memwatch/frame').Answer) => void>} */
  #waiting = new Map()
  #answerWithinMs
  #token

  /** @param {{ answerWithinMs?: number, token?: string }} [options] token: shared with the agents */
  constructor ({ answerWithinMs = ANSWER_WITHIN_MS, token } = {}) {
    this.#answerWithinMs = answerWithinMs
    this.#token = token
  }

  /** What an agent answered; an answer that nobody waits for is dropped. @param {import('memwatch/frame').Answer} answer */
  answered (answer) {
    this.#waiting.get(answer.id)?.(answer)
  }

  /**
   * @param {import('../series/target').Target} target
   * @param {import('memwatch/frame').CommandName} command
   * @returns {Promise<import('memwatch/frame').Answer>} one that says ok
   * @throws {CommandError}
   */
  async carryOut (target, command) {
    if (!target.hello.commands?.includes(command)) {
      throw new CommandError('not_enabled', `the agent of ${target.name} takes no commands: start the app with MEMWATCH_ALLOCATOR_ACCESS=trim, over a Unix socket, and with the package memwatch-allocator or Node 26`)
    }
    const { send } = target
    if (!send) throw new CommandError('not_connected', `the agent of ${target.name} is not connected`)
    const id = randomUUID()
    const answer = await new Promise((/** @type {(answer: import('memwatch/frame').Answer | undefined) => void} */ resolve) => {
      const timer = setTimeout(resolve, this.#answerWithinMs, undefined)
      this.#waiting.set(id, found => {
        clearTimeout(timer)
        resolve(found)
      })
      const { pid, startedAtUnixMs } = target.hello
      send(JSON.stringify({ v: PROTOCOL_VERSION, type: 'command', id, command, ...(this.#token && { proof: proofOf(this.#token, { id, command, pid, startedAtUnixMs }) }) }) + '\n')
    }).finally(() => this.#waiting.delete(id))
    if (!answer) throw new CommandError('no_answer', `the agent of ${target.name} did not answer within ${this.#answerWithinMs / 1000} s`)
    if (!answer.ok) {
      const reason = answer.reason ?? ''
      throw new CommandError(reason in REFUSALS ? /** @type {any} */ (reason) : 'refused', REFUSALS[reason] ?? `the agent refused: ${reason}`)
    }
    return answer
  }
}

module.exports = { Commands, CommandError }

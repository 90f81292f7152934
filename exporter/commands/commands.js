'use strict'

const { randomUUID } = require('node:crypto')
const { PROTOCOL_VERSION } = require('@memwatch/agent/protocol/frame')
const { computeProof } = require('@memwatch/agent/protocol/proof')
const { formatBytes } = require('@memwatch/engine/text/format')

/** Default time limit for an answer. It is long, because a blocked app answers late. */
const ANSWER_WITHIN_MS = 30_000

/**
 * @typedef {'not_enabled' | 'not_connected' | 'no_answer' | 'too_soon' | 'not_supported' |
 *   'not_trusted' | 'unknown_command' | 'refused' | 'busy' | 'unknown_capture' |
 *   'snapshot_not_allowed' | 'bad_arguments' | 'too_large' | 'failed' | 'unknown_process' |
 *   'not_attachable'} CommandErrorCode
 */

/** A command that failed. `code` is the reason, in the API's words. */
class CommandError extends Error {
  /**
   * @param {CommandErrorCode} code
   * @param {string} message
   */
  constructor (code, message) {
    super(message)
    this.code = code
  }
}

/**
 * Texts for the reasons with which an agent refuses a command.
 * @type {Record<string, (answer: import('@memwatch/agent/protocol/frame').Answer, target: string) => string>}
 */
const REFUSALS = {
  too_soon: ({
    message = 'the agent trimmed less than ten seconds ago: try again later'
  }) => message,
  not_supported: ({ message = 'the malloc of this process does not support this' }) => message,
  not_trusted: () =>
    'the agent does not trust the exporter, because other users may write to the folder of its ' +
      'socket: set MEMWATCH_TOKEN_FILE to the same file for agent and exporter',
  unknown_command: () => 'the agent does not know this command: update the agent',
  unknown_capture: () => 'the agent does not know this kind of capture: update the agent',
  snapshot_not_allowed: () =>
    'a snapshot contains all strings of the app, including secrets: start the app with ' +
      'MEMWATCH_ALLOW_SNAPSHOT=1 to allow it, or capture a heap_profile, which contains none',
  busy: (_, target) => `another capture of ${target} is running: a process makes one at a time`,
  bad_arguments: ({ message = '' }) => message,
  failed: ({ message = '' }) => `the command failed in the app: ${message}`,
  too_large: ({ predictedBytes = 0, headroomBytes = 0 }, target) =>
    `a snapshot of ${target} may need ${formatBytes(predictedBytes)}, and ` +
      `${formatBytes(headroomBytes)} are free: it could kill the process. Capture a heap_profile ` +
        'instead, which costs little and shows the allocations that survive, or add --force'
}

/** Hint for all commands: an agent offers no commands on a socket that it cannot trust. */
const OR_TRUST = 'if other users may write to the folder of its socket, also set ' +
  'MEMWATCH_TOKEN_FILE to the same file for agent and exporter'
const CAPTURE_ENABLED_BY = 'update an older agent, connect it over a Unix socket, and start the ' +
  `app without MEMWATCH_CAPTURES=off; ${OR_TRUST}`
const TRIM_ENABLED_BY = 'start the app with MEMWATCH_ALLOCATOR_ACCESS=trim, over a Unix socket, ' +
  `and with the package @memwatch/allocator or Node 26; ${OR_TRUST}`

/**
 * Settings that make an agent accept a command.
 * @type {Record<import('@memwatch/agent/protocol/frame').CommandName, string>}
 */
const ENABLED_BY = {
  look: TRIM_ENABLED_BY,
  trim: TRIM_ENABLED_BY,
  capture: CAPTURE_ENABLED_BY,
  sample_heap: CAPTURE_ENABLED_BY,
  count_slices: CAPTURE_ENABLED_BY,
  force_gc: `start the app with MEMWATCH_FORCED_GC=allow, over a Unix socket; ${OR_TRUST}`
}

/**
 * Sends commands to agents that accept them, and waits for the answers. A command goes to the
 * connection of its target. Node.js cannot identify the peer of a Unix socket, but no other process
 * can take over an open connection that still delivers lines. An answer must contain the id of its
 * command, which no other process knows.
 */
class Commands {
  /**
   * Waiting commands by id. They resolve with the answer, with null if the connection ended, or
   * with undefined after the time limit.
   * @type {Map<string, { target: import('@memwatch/engine/history/target').Target, resolve: (answer:
   *   import('@memwatch/agent/protocol/frame').Answer | null | undefined) => void,
   *   timer: NodeJS.Timeout }>}
   */
  #waiting = new Map()
  #answerWithinMs
  #token
  /** Number of commands sent to all agents so far: an agent accepts only ascending numbers. */
  #sent = 0

  /**
   * @param {{ answerWithinMs?: number, token?: string }} [options] token: token shared with the
   *   agents
   */
  constructor ({ answerWithinMs = ANSWER_WITHIN_MS, token } = {}) {
    this.#answerWithinMs = answerWithinMs
    this.#token = token
  }

  /**
   * Handles the answer of an agent. Ignores an answer without a waiting command, or to a command of
   * another target.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/agent/protocol/frame').Answer} answer
   */
  answered (target, answer) {
    const waiting = this.#waiting.get(answer.id)
    if (waiting?.target === target) waiting.resolve(answer)
  }

  /**
   * Fails all commands of a closed connection: no answer can follow.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  gone (target) {
    for (const waiting of this.#waiting.values()) {
      if (waiting.target === target) waiting.resolve(null)
    }
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/agent/protocol/frame').CommandName} command
   * @throws {CommandError} if the target's agent does not accept the command, or is not connected
   */
  assertTakes (target, command) {
    if (!target.hello.commands?.includes(command)) {
      throw new CommandError(
        'not_enabled',
        `the agent of ${target.name} does not allow this command: ${ENABLED_BY[command]}`
      )
    }
    if (!target.send) {
      throw new CommandError('not_connected', `the agent of ${target.name} is not connected`)
    }
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/agent/protocol/frame').CommandName} command
   * @param {{ args?: object, id?: string, answerWithinMs?: number }} [options]
   * @returns {Promise<import('@memwatch/agent/protocol/frame').Answer>} a successful answer
   * @throws {CommandError}
   */
  async carryOut (
    target,
    command,
    { args, id = randomUUID(), answerWithinMs = this.#answerWithinMs } = {}
  ) {
    this.assertTakes(target, command)
    const {
      hello: { pid, startedAtUnixMs, nonce },
      send = () => {}
    } = target
    const sequence = ++this.#sent
    const answer = await new Promise(
      (/** @type {(answer: import('@memwatch/agent/protocol/frame').Answer | null | undefined) => void} */ resolve) => {
        const timer = setTimeout(resolve, answerWithinMs, undefined)
        this.#waiting.set(id, { target, resolve, timer })
        const asked = { id, command, args, pid, startedAtUnixMs, nonce, sequence }
        const proof = this.#token && computeProof(this.#token, asked)
        const line = { v: PROTOCOL_VERSION, type: 'command', id, command, args, sequence, proof }
        send(JSON.stringify(line) + '\n')
      }
    )
    clearTimeout(this.#waiting.get(id)?.timer)
    this.#waiting.delete(id)
    if (!answer) {
      throw new CommandError(
        'no_answer',
        answer === null
          ? `the connection of ${target.name} ended before an answer arrived`
          : `the agent of ${target.name} did not answer within ${answerWithinMs / 1000} s`
      )
    }
    if (!answer.ok) {
      const reason = answer.reason ?? ''
      const text = Object.hasOwn(REFUSALS, reason) ? REFUSALS[reason] : undefined
      throw new CommandError(
        text ? /** @type {CommandErrorCode} */ (reason) : 'refused',
        text ? text(answer, target.name) : `the agent refused: ${reason}`
      )
    }
    return answer
  }
}

module.exports = { Commands, CommandError }

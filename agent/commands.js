'use strict'

const { isOwnSocket } = require('./protocol/socket')
const { debug } = require('./guard')
const { PROTOCOL_VERSION } = require('./protocol/frame')
const { nowMs, parseJson, readFileSync, readRssBytes, timeOriginUnixMs } = require('./primordials')
const { isProof } = require('./protocol/proof')

/** An extra frame takes milliseconds, so the agent sends at most one within this time. */
const EXTRA_FRAME_EVERY_SECONDS = 1
/** malloc_trim blocks the app for tens of milliseconds: repeated commands must not stop the app. */
const TRIM_EVERY_SECONDS = 10
/** Interval between checks of folder, socket and token file, for any number of commands. */
const TRUST_SECONDS = 1
const MAX_ID_LENGTH = 64

/**
 * @typedef {ReturnType<typeof commands>} Commands
 *
 * @typedef {Omit<import('./protocol/frame').Answer, 'id'>} Result
 *
 * @typedef {Pick<import('./allocator-access').AllocatorAccess, 'trim'>} Access
 *
 * @typedef {object} Connection
 * @property {string} [nonce] sent in its hello, and covered by each proof
 * @property {number} sequence number of the last proved command: each number is accepted once
 */

/**
 * Executes the exporter's commands, as far as the operator allows them.
 *
 * @param {object} options
 * @param {{ path: string }} options.address source of the commands
 * @param {Access} [options.access] allows `trim`
 * @param {ReturnType<typeof import('./capture').captures>} [options.captures] allows captures
 * @param {Pick<import('./forced-gc').ForcedGc, 'run'>} [options.forcedGc] allows full GCs
 * @param {string} [options.tokenFile] commands must prove knowledge of its content
 * @param {() => void} options.sendExtraFrame sends a frame with all expensive values
 * @param {{ now?: () => number, rss?: () => number }} [dependencies] now: seconds
 */
function commands (
  { address, access, captures, forcedGc, tokenFile, sendExtraFrame },
  { now = () => nowMs() / 1000, rss = readRssBytes } = {}
) {
  let trimmedAt = -Infinity
  let extraFrameAt = -Infinity
  const isTrusted = trust({ address, tokenFile, now })

  /** @returns {Result} */
  const executeLook = () => {
    if (now() - extraFrameAt >= EXTRA_FRAME_EVERY_SECONDS) {
      extraFrameAt = now()
      sendExtraFrame()
    }
    return { ok: true }
  }

  /**
   * @param {Access} access
   * @returns {Result}
   */
  const trim = access => {
    const began = now()
    if (began - trimmedAt < TRIM_EVERY_SECONDS) return { ok: false, reason: 'too_soon' }
    trimmedAt = began
    sendExtraFrame() // sends the values from which the effect is predicted
    const rssBeforeBytes = rss()
    const from = now()
    const trimmed = access.trim()
    const blockedSeconds = now() - from
    return trimmed
      ? { ok: true, blockedSeconds, rssBeforeBytes, rssAfterBytes: rss() }
      : { ok: false, reason: 'not_supported' }
  }

  /**
   * @param {unknown} command
   * @param {unknown} args
   * @param {string} id
   * @returns {Result | Promise<Result>}
   */
  const run = (command, args, id) => {
    if (command === 'look' && access) return executeLook()
    if (command === 'trim' && access) return trim(access)
    if (command === 'capture' && captures) return captures.capture(id, args)
    if (command === 'sample_heap' && captures) return captures.sampleHeap(args)
    if (command === 'count_slices' && captures) return captures.countSlices()
    if (command === 'force_gc' && forcedGc) return forcedGc.run()
    return { ok: false, reason: 'unknown_command' }
  }

  return {
    /**
     * @param {string} line
     * @param {(answer: import('./protocol/frame').Answer) => void} reply called once for each
     *   command, now or later
     * @param {Connection} connection source of the line
     * @returns {boolean} true: a trusted command
     */
    execute (line, reply, connection) {
      const asked = readCommand(line)
      if (!asked) return false
      const { id, command, args } = asked
      if (!isTrusted(asked, connection)) {
        reply({ id, ok: false, reason: 'not_trusted' })
        return false
      }
      const result = run(command, args, id)
      if (!('then' in result)) reply({ id, ...result })
      else result.then(found => reply({ id, ...found })).catch(error => debug('answer: %s', error))
      return true
    }
  }
}

/**
 * @param {string} line
 * @returns {Record<string, any> & { id: string } | undefined} undefined: no command
 */
function readCommand (line) {
  let asked
  try {
    asked = parseJson(line)
  } catch {
    return undefined
  }
  const isCommand = asked?.v === PROTOCOL_VERSION && asked.type === 'command' &&
    typeof asked.id === 'string' && asked.id.length <= MAX_ID_LENGTH
  return isCommand ? asked : undefined
}

/**
 * Any process can reach a TCP port. A Unix socket is as safe as its folder; where others may write,
 * as in a volume that containers share, the exporter must prove that it knows the token.
 *
 * @param {{ address: { path: string }, tokenFile?: string, now: () => number }} options now:
 *   seconds
 * @returns {(asked: Record<string, any>, connection: Connection) => boolean}
 */
function trust ({ address, tokenFile, now }) {
  let checkedAt = -Infinity
  let isOwn = false
  let token = ''
  const check = () => {
    if (now() - checkedAt < TRUST_SECONDS) return
    checkedAt = now()
    isOwn = false
    token = ''
    try {
      if (tokenFile) token = readFileSync(tokenFile, 'utf8').trim()
      else isOwn = isOwnSocket(address.path)
    } catch {} // an unreadable socket or token is not trusted
  }
  return ({ id, command, args, sequence, proof }, connection) => {
    check()
    if (!tokenFile) return isOwn
    const isNext = Number.isSafeInteger(sequence) && sequence > connection.sequence
    const { pid } = process
    const startedAtUnixMs = Math.round(timeOriginUnixMs)
    const { nonce } = connection
    const asked = { id, command, args, pid, startedAtUnixMs, nonce, sequence }
    if (token === '' || !isNext || !isProof(proof, token, asked)) return false
    connection.sequence = sequence
    return true
  }
}

module.exports = { commands }

'use strict'

const { nowMs, parseJson, readFileSync, readRssBytes, timeOriginUnixMs } = require('./primordials')
const { isOwnSocket } = require('./config')
const { PROTOCOL_VERSION } = require('./frame')
const { debug } = require('./guard')
const { isProof } = require('./proof')

/** A look takes milliseconds; one that is younger than this will do. */
const LOOK_EVERY_SECONDS = 1
/** malloc_trim takes tens of milliseconds: an app that is told to again and again would do nothing else. */
const TRIM_EVERY_SECONDS = 10

/** @typedef {ReturnType<typeof commands>} Commands */

/**
 * Carries out what the exporter asks for, where the operator allowed it.
 *
 * @param {object} options
 * @param {{ path: string }} options.address where commands come from
 * @param {Pick<import('./allocator-access').AllocatorAccess, 'trim'>} [options.access] with it malloc may be trimmed
 * @param {Pick<ReturnType<typeof import('./capture').captures>, 'capture'>} [options.captures] with them captures may be made
 * @param {string} [options.tokenFile] commands must prove to know what it holds
 * @param {() => void} options.look sends a frame with all that is dear
 * @param {{ now?: () => number, rss?: () => number }} [dependencies] now: seconds
 */
function commands ({ address, access, captures, tokenFile, look }, { now = () => nowMs() / 1000, rss = readRssBytes } = {}) {
  let trimmedAt = -Infinity
  let lookedAt = -Infinity

  /** @returns {Omit<import('./frame').Answer, 'id'>} */
  const sendLook = () => {
    if (now() - lookedAt >= LOOK_EVERY_SECONDS) {
      lookedAt = now()
      look()
    }
    return { ok: true }
  }

  /** @param {Pick<import('./allocator-access').AllocatorAccess, 'trim'>} access @returns {Omit<import('./frame').Answer, 'id'>} */
  const trim = access => {
    const began = now()
    if (began - trimmedAt < TRIM_EVERY_SECONDS) return { ok: false, reason: 'too_soon' }
    trimmedAt = began
    look() // what is expected to come back, as of now
    const rssBeforeBytes = rss()
    const from = now()
    const trimmed = access.trim()
    const blockedSeconds = now() - from
    return trimmed
      ? { ok: true, blockedSeconds, rssBeforeBytes, rssAfterBytes: rss() }
      : { ok: false, reason: 'not_supported' }
  }

  return {
    /**
     * @param {string} line
     * @param {(answer: import('./frame').Answer) => void} reply now or later; a line that is no command is not answered
     */
    obey (line, reply) {
      const { v, type, id, command, args, proof } = parseJson(line)
      if (v !== PROTOCOL_VERSION || type !== 'command' || typeof id !== 'string' || id.length > 64) return
      if (!isTrusted({ address, tokenFile, proof }, { id, command, args })) reply({ id, ok: false, reason: 'not_trusted' })
      else if (command === 'look' && access) reply({ id, ...sendLook() })
      else if (command === 'trim' && access) reply({ id, ...trim(access) })
      else if (command === 'capture' && captures) captures.capture(id, args).then(answer => reply({ id, ...answer })).catch(error => debug('capture: %s', error))
      else reply({ id, ok: false, reason: 'unknown_command' })
    }
  }
}

/**
 * Whoever reaches a TCP port may say anything. A Unix socket is as safe as the folder that it lies in; where others may write there,
 * as in a volume that containers share, the exporter must prove that it knows the token.
 *
 * @param {{ address: { path: string }, tokenFile: string | undefined, proof: unknown }} way that it came
 * @param {{ id: string, command: string, args: unknown }} asked
 * @returns {boolean}
 */
function isTrusted ({ address, tokenFile, proof }, asked) {
  let token
  try {
    if (!tokenFile) return isOwnSocket(address.path)
    token = readFileSync(tokenFile, 'utf8').trim()
  } catch {
    return false // what cannot be looked at is not trusted
  }
  return token !== '' && isProof(proof, token, { ...asked, pid: process.pid, startedAtUnixMs: Math.round(timeOriginUnixMs) })
}

module.exports = { commands }

'use strict'

const fs = require('node:fs')
const { performance } = require('node:perf_hooks')
const { isOwnSocket } = require('./config')
const { PROTOCOL_VERSION } = require('./frame')
const { isProof } = require('./proof')

/** A look takes milliseconds; one that is younger than this will do. */
const LOOK_EVERY_SECONDS = 1
/** malloc_trim takes tens of milliseconds: an app that is told to again and again would do nothing else. */
const TRIM_EVERY_SECONDS = 10

/** @typedef {ReturnType<typeof commands>} Commands */

/**
 * Carries out what the exporter asks for, where the operator allowed it (MEMWATCH_ALLOCATOR_ACCESS=trim).
 *
 * @param {object} options
 * @param {import('./config').Config['socket']} options.address where commands come from
 * @param {Pick<import('./allocator-access').AllocatorAccess, 'trim'>} options.access
 * @param {string} [options.tokenFile] commands must prove to know what it holds
 * @param {() => void} options.look sends a frame with all that is dear
 * @param {{ now?: () => number, rss?: () => number }} [dependencies] now: seconds
 */
function commands ({ address, access, tokenFile, look }, { now = () => performance.now() / 1000, rss = process.memoryUsage.rss } = {}) {
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

  /** @returns {Omit<import('./frame').Answer, 'id'>} */
  const trim = () => {
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
    /** @type {import('./frame').CommandName[]} */
    names: ['look', 'trim'],
    /**
     * @param {string} line
     * @returns {import('./frame').Answer | undefined} undefined where the line is no command: it is not answered
     */
    obey (line) {
      const { v, type, id, command, proof } = JSON.parse(line)
      if (v !== PROTOCOL_VERSION || type !== 'command' || typeof id !== 'string' || id.length > 64) return undefined
      if (!isTrusted({ address, tokenFile, id, command, proof })) return { id, ok: false, reason: 'not_trusted' }
      if (command === 'look') return { id, ...sendLook() }
      if (command === 'trim') return { id, ...trim() }
      return { id, ok: false, reason: 'unknown_command' }
    }
  }
}

/**
 * Whoever reaches a TCP port may say anything. A Unix socket is as safe as the folder that it lies in; where others may write there,
 * as in a volume that containers share, the exporter must prove that it knows the token.
 *
 * @param {{ address: import('./config').Config['socket'], tokenFile: string | undefined, id: string, command: string, proof: unknown }} asked
 * @returns {boolean}
 */
function isTrusted ({ address, tokenFile, id, command, proof }) {
  if (!('path' in address)) return false
  let token
  try {
    if (!tokenFile) return isOwnSocket(address.path)
    token = fs.readFileSync(tokenFile, 'utf8').trim()
  } catch {
    return false // what cannot be looked at is not trusted
  }
  return token !== '' && isProof(proof, token, { id, command, pid: process.pid, startedAtUnixMs: Math.round(performance.timeOrigin) })
}

module.exports = { commands }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { performance } = require('node:perf_hooks')
const { defaultSocketPath } = require('./config')
const { PROTOCOL_VERSION } = require('./frame')

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
 * @param {() => void} options.look sends a frame with all that is dear
 * @param {{ now?: () => number, rss?: () => number, defaultPath?: string }} [dependencies] now: seconds
 */
function commands ({ address, access, look }, { now = () => performance.now() / 1000, rss = process.memoryUsage.rss, defaultPath = defaultSocketPath() } = {}) {
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
      const { v, type, id, command } = JSON.parse(line)
      if (v !== PROTOCOL_VERSION || type !== 'command' || typeof id !== 'string' || id.length > 64) return undefined
      if (!isTrusted(address, defaultPath)) return { id, ok: false, reason: 'not_trusted' }
      if (command === 'look') return { id, ...sendLook() }
      if (command === 'trim') return { id, ...trim() }
      return { id, ok: false, reason: 'unknown_command' }
    }
  }
}

/**
 * Whoever reaches a TCP port may say anything; a Unix socket is as safe as the folder that it lies in. The one that the
 * operator named is taken at his word, the one in the system's temporary folder must be this user's own.
 *
 * @param {import('./config').Config['socket']} address
 * @param {string} defaultPath
 * @returns {boolean}
 */
function isTrusted (address, defaultPath) {
  if (!('path' in address)) return false
  return address.path !== defaultPath || fs.statSync(path.dirname(address.path)).uid === process.getuid?.()
}

module.exports = { commands }

'use strict'

const path = require('node:path')
const { closeSync, openSync, readSync } = require('../primordials')

/** Read of a file at a time: a frame takes one such piece. */
const PIECE_BYTES = 65_536
/** Addons that are looked at; an app has a handful. */
const MOST = 48
/**
 * A symbol of V8's C++ interface, in the Itanium mangling: v8::..., as an addon that uses it must
 * import.
 */
const V8_SYMBOL = /_ZNK?2v8/

/**
 * Native addons that are loaded, and whether they use V8's C++ interface (or NAN, which is made of
 * it) or Node-API alone: only the latter go on working when V8's ABI changes, as under pointer
 * compression. Their files are read piece by piece, one piece a frame, once.
 *
 * @returns {import('./collector').Collector & { look: (maps: string) => void }} look: is given the
 *   text of /proc/self/maps
 */
function addons () {
  /** @type {Map<string, string>} file -> key on the wire */
  const known = new Map()
  /** @type {string[]} */
  const waiting = []
  /** @type {{ file: string, at: number, tail: string } | undefined} */
  let reading
  let changed = false
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)

  /**
   * @param {string} file
   * @param {'v8' | 'node_api' | 'unread'} abi
   */
  const settle = (file, abi) => {
    known.set(file, `${abi}/${path.basename(file).replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 48)}`)
    changed = true
  }

  /**
   * Opened for each piece, as the app has its turns in between.
   * @param {string} file
   * @param {number} at
   */
  const readAt = (file, at) => {
    const fd = openSync(file, 'r')
    try {
      return readSync(fd, buffer, 0, PIECE_BYTES, at)
    } finally {
      closeSync(fd)
    }
  }

  const readPiece = () => {
    if (!reading) {
      const file = waiting.shift()
      if (file === undefined) return
      reading = { file, at: 0, tail: '' }
    }
    const { file } = reading
    let abi
    try {
      const bytes = readAt(file, reading.at)
      reading.at += bytes
      const text = reading.tail + buffer.toString('latin1', 0, bytes)
      reading.tail = text.slice(-8)
      abi = V8_SYMBOL.test(text) ? /** @type {const} */ ('v8') : bytes === 0 ? /** @type {const} */ ('node_api') : undefined
    } catch {
      abi = /** @type {const} */ ('unread')
    }
    if (!abi) return
    reading = undefined
    settle(file, abi)
  }

  return {
    fields: ['addons'],
    look (maps) {
      for (const [file] of maps.matchAll(/\/.*\.node$/gm)) {
        if (known.has(file) || known.size >= MOST) continue
        known.set(file, '')
        waiting.push(file)
      }
      changed = true
    },
    read (values) {
      if (!changed) return
      readPiece()
      if (reading || waiting.length > 0) return
      changed = false
      /** @type {Record<string, number>} */
      const counts = Object.create(null)
      for (const key of known.values()) counts[key] = (counts[key] ?? 0) + 1
      values.addons = counts
    }
  }
}

module.exports = { addons }

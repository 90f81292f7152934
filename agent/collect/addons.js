'use strict'

const { locateNames } = require('./elf-names')
const { decodeLatin1 } = require('../read-file')
const { closeSync, openSync, readSync } = require('../primordials')

/** Bytes searched in one frame, in about 50 µs. */
const PIECE_BYTES = 16_384
/** Limit of inspected files; an app loads a handful. */
const MOST = 48
/** Limit of a list of names: the longest in 23 packages of npm has 176 KiB. */
const MOST_NAMES_BYTES = 2 ** 20
/** Addons in /proc/self/maps; the content of a deleted file is unreadable. */
const ADDON_LINES = /(\/.*\.node)( \(deleted\))?$/gm
/**
 * V8's C++ interface in the Itanium mangling, `v8::...`. An addon that uses this interface imports
 * such names.
 */
const V8_NAMES = ['_ZN2v8', '_ZNK2v8']
/** Overlap of two pieces, so that a name across their border is found. */
const OVERLAP_BYTES = '_ZNK2v8'.length - 1

/**
 * @param {'v8' | 'node_api' | 'unread'} abi
 * @param {string} file
 */
const formatKey = (abi, file) => {
  const name = file.slice(file.lastIndexOf('/') + 1)
  return `${abi}/${name.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 48)}`
}

/**
 * Loaded native addons, by interface: V8's C++ (with NAN, which builds on it), or Node-API alone,
 * which keeps working when V8's ABI changes, as under pointer compression. The imported names
 * decide. They are a few KiB that the dynamic loader reads as well; the agent does not read the
 * rest of a file. docs/decisions/0058-addons-are-told-by-imports.md
 *
 * @param {string} [own] file of the agent's own addon, which is left out
 * @returns {import('./collector').Collector & { readMaps: (maps: string) => void }} readMaps:
 *   accepts text of /proc/self/maps
 */
function addons (own) {
  /** @type {Map<string, string>} file -> key on the wire */
  const known = new Map()
  /** @type {string[]} */
  const waiting = []
  /** Unsearched names of waiting[0]. @type {import('./elf-names').Range | undefined} */
  let names
  let changed = false
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)
  const words = new Uint32Array(buffer.buffer)

  /**
   * Opens the file for each piece: between frames the agent holds no descriptor of an app's file.
   * @param {string} file
   * @returns {'v8' | 'node_api' | undefined} undefined: more names follow
   * @throws error of the file system, or not the expected ELF file
   */
  const searchPiece = file => {
    const fd = openSync(file, 'r')
    try {
      names ??= locateNames(words, (at, bytes) => readSync(fd, buffer, 0, bytes, at))
      if (names.end - names.start > MOST_NAMES_BYTES) throw new Error('too many names')
      const length = Math.min(names.end - names.start, PIECE_BYTES)
      if (readSync(fd, buffer, 0, length, names.start) < length) throw new Error('cut off')
      const piece = decodeLatin1(buffer, length)
      if (piece.includes(V8_NAMES[0]) || piece.includes(V8_NAMES[1])) return 'v8'
      if (names.start + length === names.end) return 'node_api'
      names.start += length - OVERLAP_BYTES
    } finally {
      closeSync(fd)
    }
  }

  const inspect = () => {
    const file = waiting[0]
    if (file === undefined) return
    /** @type {ReturnType<typeof searchPiece> | 'unread'} */
    let abi
    try {
      abi = searchPiece(file)
    } catch {
      abi = 'unread'
    }
    if (!abi) return
    known.set(file, formatKey(abi, file))
    waiting.shift()
    names = undefined
  }

  return {
    fields: ['addons'],
    readMaps (maps) {
      for (const [, file, deleted] of maps.matchAll(ADDON_LINES)) {
        if (known.has(file) || known.size >= MOST || file === own) continue
        known.set(file, formatKey('unread', file))
        if (!deleted) waiting.push(file)
      }
      changed = true
    },
    read (values) {
      if (!changed) return
      inspect()
      if (waiting.length > 0) return
      changed = false
      /** @type {Record<string, number>} */
      const counts = Object.create(null)
      for (const key of known.values()) counts[key] = (counts[key] ?? 0) + 1
      values.addons = counts
    }
  }
}

module.exports = { addons }

'use strict'

const fs = require('node:fs')

/**
 * Reads libuv's own list of signal handlers, to find out if an app listens to a signal. The
 * kernel's list is not enough, because it does not distinguish handlers of the app from handlers of
 * Node.js.
 */

/** ELF64, little-endian: elf(5). */
const ELF_MAGIC = 0x464c457f
const ELF_CLASS_64 = 2
const ELF_TYPE_EXEC = 2
const SECTION = { symbols: 2 }
const SYMBOL_BYTES = 24
/** Number of symbols that are read at once: the symbol table of Node.js has some 5 MiB. */
const CHUNK_SYMBOLS = 43_690
/**
 * Name of the list's root. A compiler that optimises whole programs adds a number, as in Node.js
 * 26.
 */
const TREE = /^uv__signal_tree(\.\w+)*$/
/** Fields of uv_signal_t on 64-bit systems, part of libuv's stable ABI. */
const HANDLE = { bytes: 136, signal: 104, left: 112, right: 120 }
/**
 * Size limit of each part that is read from a binary, because any program may call itself node. The
 * symbol names in Node.js have some 8 MiB.
 */
const MOST_BYTES = 128 * 2 ** 20
const MOST_NAME_BYTES = 64
/**
 * Upper bound of the nodes of a tree. A real tree has at most one node for each signal of each
 * loop.
 */
const MOST_HANDLES = 4096

/**
 * @param {number} fd
 * @param {number | bigint} at
 * @param {number} length
 * @throws {Error} if the file is shorter, or the length is impossible for a real binary
 */
function readAt (fd, at, length) {
  if (length > MOST_BYTES) throw new RangeError('a part is too large')
  const bytes = Buffer.alloc(length)
  if (fs.readSync(fd, bytes, 0, length, at) !== length) throw new Error('unexpected end')
  return bytes
}

/**
 * @param {number} fd descriptor of a binary
 * @returns {{ address: bigint, isFixed: boolean } | undefined} address of libuv's list; isFixed:
 *   true if it needs no offset; undefined if the binary has no such symbol
 */
function findTree (fd) {
  const header = readAt(fd, 0, 64)
  if (header.readUInt32LE(0) !== ELF_MAGIC || header[4] !== ELF_CLASS_64 || header[5] !== 1) return
  const isFixed = header.readUInt16LE(16) === ELF_TYPE_EXEC
  const entry = header.readUInt16LE(58)
  const table = readAt(fd, header.readBigUInt64LE(40), entry * header.readUInt16LE(60))
  const sections = Array.from({ length: table.length / entry }, (_, i) => {
    const at = i * entry
    return {
      type: table.readUInt32LE(at + 4),
      offset: table.readBigUInt64LE(at + 24),
      bytes: Number(table.readBigUInt64LE(at + 32)),
      link: table.readUInt32LE(at + 40)
    }
  })
  const symbols = sections.find(({ type }) => type === SECTION.symbols)
  if (!symbols) return
  const names = readAt(fd, sections[symbols.link].offset, sections[symbols.link].bytes)
  const start = names.indexOf('\0uv__signal_tree')
  if (start < 0) return
  const isName = (/** @type {number} */ at) => {
    const name = names.subarray(at, at + MOST_NAME_BYTES)
    return name.subarray(0, UV.length).equals(UV) &&
      TREE.test(name.toString('latin1', 0, name.indexOf(0)))
  }
  if (symbols.bytes > MOST_BYTES) return
  for (let read = 0; read < symbols.bytes;) {
    const length = Math.min(CHUNK_SYMBOLS * SYMBOL_BYTES, symbols.bytes - read)
    const chunk = readAt(fd, symbols.offset + BigInt(read), length)
    for (let at = 0; at + SYMBOL_BYTES <= length; at += SYMBOL_BYTES) {
      if (isName(chunk.readUInt32LE(at))) {
        return { address: chunk.readBigUInt64LE(at + 8), isFixed }
      }
    }
    read += length
  }
}
/**
 * Results by binary. They are cached, because a symbol table has megabytes, and many processes
 * share one binary.
 * @type {Map<string, ReturnType<typeof findTree>>}
 */
const trees = new Map()
const MOST_TREES = 64

/** @param {number} fd descriptor of a binary */
function recallTree (fd) {
  const { dev, ino, size, mtimeMs } = fs.fstatSync(fd)
  const key = [dev, ino, size, mtimeMs].join(' ')
  if (!trees.has(key)) {
    if (trees.size >= MOST_TREES) trees.clear()
    trees.set(key, undefined) // An unreadable binary is remembered, too.
    trees.set(key, findTree(fd))
  }
  return trees.get(key)
}

const UV = Buffer.from('uv__signal_tree')

/**
 * @param {number} pid
 * @returns {bigint} address at which its binary begins
 * @throws {Error} if the process is gone, or its memory map is not readable
 */
function findBase (pid) {
  const binary = fs.readlinkSync(`/proc/${pid}/exe`)
  const line = fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')
    .find(line => line.endsWith(` ${binary}`) && / 00000000 /.test(line))
  if (!line) throw new Error('its memory map has no binary')
  return BigInt(`0x${line.slice(0, line.indexOf('-'))}`)
}

/**
 * @param {number} pid
 * @param {number} signal number of the signal
 * @returns {boolean | undefined} undefined if unknown, because its binary is stripped, libuv is a
 *   separate library, or its memory is not readable by this user
 */
function listensTo (pid, signal) {
  let binary
  let memory
  try {
    binary = fs.openSync(`/proc/${pid}/exe`, 'r')
    const tree = recallTree(binary)
    if (!tree) return undefined
    memory = fs.openSync(`/proc/${pid}/mem`, 'r')
    const address = tree.address + (tree.isFixed ? 0n : findBase(pid))
    const open = [readAt(memory, address, 8).readBigUInt64LE(0)]
    for (let seen = 0; open.length > 0; seen++) {
      const next = /** @type {bigint} */ (open.pop())
      if (next === 0n) continue
      if (seen > MOST_HANDLES) return undefined
      const handle = readAt(memory, next, HANDLE.bytes)
      if (handle.readInt32LE(HANDLE.signal) === signal) return true
      open.push(handle.readBigUInt64LE(HANDLE.left), handle.readBigUInt64LE(HANDLE.right))
    }
    return false
  } catch {
    return undefined // The memory is not readable by this user, gone, or changed while it was read.
  } finally {
    for (const fd of [binary, memory]) if (fd !== undefined) fs.closeSync(fd)
  }
}

module.exports = { listensTo }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { Witness } = require('./witness')

/**
 * Upper bound of descriptors whose links are read; reading so many takes 10 ms. Of more
 * descriptors, an even sample is read.
 */
const MOST_LINKS = 4096
const MOST_THREADS = 1024
/** Size limit of a table of sockets, enough for 65,000 connections. */
const MOST_TABLE_BYTES = 10 * 2 ** 20
const MOST_GROUPS = 6
const MOST_NAME = 200
/** Least number of similar threads or descriptors that form a group. */
const LEAST_ALIKE = 2
/** State of a socket in /proc/PID/net/tcp: proc_pid_net(5). */
const LISTEN = '0A'

/**
 * A group of open handles: descriptors with one path or peer, or threads with one name.
 * @typedef {{ count: number, text: string }} Handles count: an estimate if descriptors are sampled
 */

/**
 * Reads the links of descriptors, and the names of threads, from /proc/PID. This requires a shared
 * process namespace, and the right to read these files.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {Handles[] | null} null if the process is not visible
 */
function readOpenHandles (hello) {
  if (Witness.of(hello) === null) return null
  const { pid } = hello
  try {
    return [...descriptorGroups(pid), ...threadGroups(pid)]
      .filter(({ count }) => count >= LEAST_ALIKE)
      .sort((a, b) => b.count - a.count)
      .slice(0, MOST_GROUPS)
      .map(({ count, text }) => ({ count, text: plainText(text, MOST_NAME) }))
  } catch {
    return null // The process is gone, or belongs to another user.
  }
}

/** @param {number} pid */
function descriptorGroups (pid) {
  const folder = `/proc/${pid}/fd`
  const all = fs.readdirSync(folder)
  const stride = Math.ceil(all.length / MOST_LINKS)
  const sockets = readSockets(pid)
  /** @type {string[]} */
  const files = []
  /** @type {Map<string, number>} */
  const groups = new Map()
  for (let i = 0; i < all.length; i += stride) {
    const link = tryReadLink(`${folder}/${all[i]}`)
    if (link === undefined) continue
    if (link.startsWith('/')) files.push(link)
    else add(groups, describeLink(link, sockets))
  }
  for (const [text, count] of fileGroups(files)) groups.set(text, count)
  return [...groups].map(([text, count]) => ({ text, count: count * stride }))
}

/**
 * Groups open files: by path if a file is open more than once, otherwise by folder.
 * @param {string[]} files
 */
function fileGroups (files) {
  /** @type {Map<string, number>} */
  const byPath = new Map()
  for (const file of files) add(byPath, file)
  /** @type {Map<string, number>} */
  const groups = new Map()
  for (const [file, count] of byPath) {
    const isAlone = count === 1 && !file.startsWith('/dev/')
    add(groups, isAlone ? `files in ${path.dirname(file)}` : `of file ${file}`, count)
  }
  return groups
}

/**
 * @param {string} link such as socket:[123], pipe:[4], anon_inode:[eventpoll]
 * @param {Map<string, string>} sockets
 */
function describeLink (link, sockets) {
  const [, kind, id] = /^(\w+):\[?([^\]]*)\]?$/.exec(link) ?? []
  if (kind === 'socket') return sockets.get(id) ?? 'other sockets'
  if (kind === 'pipe') return 'pipes'
  return kind === 'anon_inode' ? id : link
}

/**
 * Describes the sockets in the process's network namespace, by inode.
 * @param {number} pid
 */
function readSockets (pid) {
  /** @type {Map<string, string>} */
  const sockets = new Map()
  for (const protocol of ['tcp', 'tcp6', 'udp', 'udp6']) addInternet(sockets, pid, protocol)
  // Columns are: number, references, protocol, flags, type, state, inode, path.
  for (const line of readTable(pid, 'unix')) {
    const [, , , , , , inode, name] = line.trim().split(/\s+/)
    sockets.set(inode, name ? `Unix sockets at ${name}` : 'Unix sockets without a name')
  }
  return sockets
}

/**
 * @param {Map<string, string>} sockets
 * @param {number} pid
 * @param {string} protocol name of its table
 */
function addInternet (sockets, pid, protocol) {
  // Columns are: slot, local, remote, state, queues, timer, retransmits, user, timeout, inode.
  const rows = readTable(pid, protocol).map(line => line.trim().split(/\s+/))
  const listening = new Set(rows.filter(row => row[3] === LISTEN).map(row => portOf(row[1])))
  const name = protocol.slice(0, 3).toUpperCase()
  for (const [, local, remote, state, , , , , , inode] of rows) {
    sockets.set(inode, `${name} ${describe(local, remote, state, listening)}`)
  }
}

/**
 * @param {string} local address
 * @param {string} remote address
 * @param {string} state
 * @param {Set<number>} listening local ports
 */
function describe (local, remote, state, listening) {
  const port = portOf(local)
  if (state === LISTEN) return 'sockets that listen'
  // A UDP socket without a peer has no remote port.
  if (portOf(remote) === 0) return 'sockets without a peer'
  return listening.has(port)
    ? `connections accepted on port ${port}`
    : `connections to ${addressOf(remote)}`
}

/** @param {string} text such as 0100007F:1F90 */
const portOf = text => parseInt(text.slice(text.indexOf(':') + 1), 16)

/**
 * Parses an address. The kernel prints it as 32-bit words in the byte order of the machine.
 * @param {string} text
 * @returns {string} such as 127.0.0.1:8080 or [::1]:8080
 */
function addressOf (text) {
  const words = text.slice(0, text.indexOf(':')).match(/.{8}/g) ?? []
  const bytes = words.flatMap(word => [...Buffer.from(word, 'hex').reverse()])
  const isMapped = bytes.length === 16 && bytes.slice(0, 10).every(byte => byte === 0) &&
    bytes[10] === 0xff && bytes[11] === 0xff
  if (bytes.length === 4 || isMapped) return `${bytes.slice(-4).join('.')}:${portOf(text)}`
  const groups = Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? []
  return `[${groups.map(group => parseInt(group, 16).toString(16)).join(':')}]:${portOf(text)}`
}

/** @param {number} pid */
function threadGroups (pid) {
  /** @type {Map<string, number>} */
  const names = new Map()
  const folder = `/proc/${pid}/task`
  for (const thread of fs.readdirSync(folder).slice(0, MOST_THREADS)) {
    const name = tryRead(`${folder}/${thread}/comm`)?.trim()
    if (name) add(names, `threads called ${name}`)
  }
  return [...names].map(([text, count]) => ({ text, count }))
}

/**
 * @param {number} pid
 * @param {string} name of a table in /proc/PID/net
 * @returns {string[]} lines of the table without the first one, which names the columns
 */
function readTable (pid, name) {
  const text = tryRead(`/proc/${pid}/net/${name}`)
  if (text === undefined || text.length > MOST_TABLE_BYTES) return []
  return text.split('\n').slice(1).filter(Boolean)
}

/** @param {string} file */
function tryRead (file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return undefined // The thread has ended meanwhile.
  }
}

/** @param {string} link */
function tryReadLink (link) {
  try {
    return fs.readlinkSync(link)
  } catch {
    return undefined // The descriptor was closed meanwhile.
  }
}

/**
 * @param {Map<string, number>} counts
 * @param {string} key
 * @param {number} [by]
 */
function add (counts, key, by = 1) {
  counts.set(key, (counts.get(key) ?? 0) + by)
}

module.exports = { readOpenHandles }

'use strict'

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { defaultSocketPath, isOwnFolder } = require('@memwatch/agent/protocol/socket')
const { ConfigError } = require('../config-error')
const { makeFolder } = require('../make-folder')

/** Error codes of folders to which this user cannot write. @type {Set<string | undefined>} */
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM'])

/** Umask with which every user may connect to a new socket. */
const ALL_MAY_CONNECT = 0o111

/** One listener for agents: an address, and limits shared by all connections to it. */
class Endpoint {
  #server
  /**
   * Address in use, with the actual port if port 0 was requested.
   * @type {import('./address').Address | undefined}
   */
  address
  /** Open connections. @type {Set<net.Socket>} */
  sockets = new Set()
  /** Bytes of unfinished lines of all connections. */
  unfinishedBytes = 0

  /**
   * @param {object} options
   * @param {(socket: net.Socket, endpoint: Endpoint) => void} options.accept
   * @param {number} options.maxConnections upper bound; further connections are refused
   * @param {number} options.maxUnfinishedBytes upper bound of the memory for unfinished lines of
   *   slow peers
   * @param {string} [options.podUid] UID of the only pod that can connect here
   */
  constructor ({ accept, maxConnections, maxUnfinishedBytes, podUid }) {
    this.maxUnfinishedBytes = maxUnfinishedBytes
    this.podUid = podUid
    this.#server = net.createServer(socket => {
      if (this.sockets.size >= maxConnections) return socket.destroy()
      this.sockets.add(socket)
      socket.once('close', () => this.sockets.delete(socket))
      accept(socket, this)
    })
  }

  /**
   * @param {import('./address').Address} address
   * @throws {Error} code EADDRINUSE if another exporter listens there, or an error of the system
   * @throws {ConfigError} if no socket can be created at the path
   */
  async listen (address) {
    try {
      await this.#listen(address)
    } catch (error) {
      const { code, syscall, message } = /** @type {NodeJS.ErrnoException} */ (error)
      if (this.podUid !== undefined || !('path' in address) || !syscall || !UNWRITABLE.has(code)) {
        throw error
      }
      throw new ConfigError(
        `--socket: cannot make ${address.path}: ${message}. Give a path in a writable folder, ` +
          'such as --socket /tmp/memwatch/exporter.sock'
      )
    }
  }

  /** @param {import('./address').Address} address */
  async #listen (address) {
    if ('path' in address && this.podUid === undefined) makeSafeFolder(address.path)
    if ('path' in address) await unlinkStale(address.path)
    await new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      const listen = () => this.#server.listen(address, () => resolve(undefined))
      // Only the pod itself sees its folder, and the pod may run as any user, so every user may
      // connect. The umask is used instead of chmod, because a user who may write to the folder
      // could have replaced the socket by a link.
      if (this.podUid === undefined) listen()
      else withUmask(ALL_MAY_CONNECT, listen)
    })
    if ('path' in address) {
      // Group access lets an app with another uid connect if the directory has a shared fsGroup.
      // Other users cannot connect.
      if (this.podUid === undefined) fs.chmodSync(address.path, 0o660)
      this.address = address
    } else {
      const bound = /** @type {net.AddressInfo} */ (this.#server.address())
      this.address = { host: bound.address, port: bound.port }
    }
  }

  /** Stops accepting, drops all connections and removes the socket file. */
  async close () {
    for (const socket of this.sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
    if (this.address && 'path' in this.address) fs.rmSync(this.address.path, { force: true })
  }
}

/**
 * Runs work with another umask. This is sufficient for listen(), which binds the socket before it
 * returns.
 * @param {number} mask
 * @param {() => void} work
 */
function withUmask (mask, work) {
  const before = process.umask(mask)
  try {
    work()
  } finally {
    process.umask(before)
  }
}

/**
 * @param {string} socketPath
 * @throws {Error} code EACCES
 */
function makeSafeFolder (socketPath) {
  const folder = path.dirname(socketPath)
  makeFolder(folder)
  // Any user could have created the folder in the system's temporary directory first. A folder
  // named by the operator is trusted.
  if (socketPath === defaultSocketPath() && !isOwnFolder(folder)) {
    throw Object.assign(
      new Error(
        `${folder} belongs to another user, is a symbolic link, or others may write to it: ` +
          'remove it, or choose another --socket'
      ),
      { code: 'EACCES' }
    )
  }
}

/**
 * Removes a socket file on which nobody listens, as a killed exporter leaves it behind.
 * @param {string} file
 */
async function unlinkStale (file) {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat) return
  if (!stat.isSocket()) {
    throw Object.assign(new Error(`${file} exists and is not a socket`), { code: 'EEXIST' })
  }
  const answered = await new Promise(resolve => {
    const probe = net.connect({ path: file })
    probe.once('connect', () => { probe.destroy(); resolve(true) })
    probe.once('error', () => resolve(false))
  })
  if (answered) {
    throw Object.assign(new Error(`another exporter is listening on ${file}`), {
      code: 'EADDRINUSE'
    })
  }
  fs.rmSync(file, { force: true })
}

module.exports = { Endpoint }

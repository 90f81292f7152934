'use strict'

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { defaultSocketPath, isOwnFolder } = require('@memwatch/agent/protocol/socket')
const { ConfigError } = require('../config-error')
const { makeFolder } = require('../make-folder')

/** Of a place where nobody, or not this user, can write. @type {Set<string | undefined>} */
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM'])

/** Lets everyone connect, whatever umask the exporter was started with. */
const ALL_MAY_CONNECT = 0o111

/**
 * Where agents come in: one address, and what all who come in there may use together.
 */
class Door {
  #server
  /** In use; a TCP port of 0 is filled in. @type {import('./address').Address | undefined} */
  address
  /** Connections that are open now. @type {Set<net.Socket>} */
  sockets = new Set()
  /** Of lines that have begun to arrive. */
  unfinishedBytes = 0

  /**
   * @param {object} options
   * @param {(socket: net.Socket, door: Door) => void} options.accept
   * @param {number} options.maxConnections more are refused
   * @param {number} options.maxUnfinishedBytes what many slow peers could make the exporter hold
   * @param {string} [options.podUid] of the pod that alone can get here
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
   * @throws {Error} code EADDRINUSE when another exporter answers there, or what the system said
   * @throws {ConfigError} where no socket can be made there
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
        `--socket: cannot make ${address.path}: ${message}. Name a place that can be written to, ` +
          'as --socket /run/memwatch/exporter.sock'
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
      // A pod's folder is for that pod, under whatever user. By umask, not chmod: who may write
      // there could have put a link in its place meanwhile.
      if (this.podUid === undefined) listen()
      else withUmask(ALL_MAY_CONNECT, listen)
    })
    if ('path' in address) {
      // Group access lets an app under another uid connect where the directory's fsGroup is shared;
      // others stay out.
      if (this.podUid === undefined) fs.chmodSync(address.path, 0o660)
      this.address = address
    } else {
      const bound = /** @type {net.AddressInfo} */ (this.#server.address())
      this.address = { host: bound.address, port: bound.port }
    }
  }

  /** Stop accepting, drop all connections, remove the socket file. */
  async close () {
    for (const socket of this.sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
    if (this.address && 'path' in this.address) fs.rmSync(this.address.path, { force: true })
  }
}

/**
 * The socket is bound before listen returns.
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
  // In the system's temporary folder anybody could have been there first; a folder that the
  // operator names is taken at his word.
  if (socketPath === defaultSocketPath() && !isOwnFolder(folder)) {
    throw Object.assign(
      new Error(
        `${folder} belongs to another user, is a symbolic link, or others may write to it: ` +
          'remove it, or name another --socket'
      ),
      { code: 'EACCES' }
    )
  }
}

/**
 * A socket file that nobody answers on is what a killed exporter left behind.
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

module.exports = { Door }

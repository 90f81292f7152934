'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { randomUUID } = require('node:crypto')

const NAME = 'lock'
/** Length limit of a socket's path: sun_path of unix(7) has 108 bytes, including the final NUL. */
const MAX_PATH_BYTES = 107
/**
 * Time limit for an answer of the lock's holder: a stopped process accepts connections but does not
 * answer.
 */
const ANSWER_WITHIN_MS = 1000
/** Time in which another process that also found the abandoned lock may replace it. */
const CONTEST_MS = 50
const HOLDER = /^\d{1,10} [\w.-]{1,253}$/
/** Error codes of a missing lock, and of a lock whose holder has ended. */
const FREE = ['ENOENT', 'ECONNREFUSED', 'ENOTSOCK']

/** Error: another process holds the lock. */
class LockedError extends Error {}

/**
 * Lock on a folder: a Unix socket in it, on which its holder listens. The kernel closes the
 * listener when the process ends, so a lock that refuses connections is abandoned. A pid file could
 * not show this, because different containers use the same pids and cannot see each other's
 * processes. The lock works between processes of one kernel. On a network file system other
 * machines do not see it.
 */
class FolderLock {
  #folder
  /** @type {net.Server | undefined} */
  #server
  #inode = 0

  /** @param {string} folder */
  constructor (folder) {
    this.#folder = folder
  }

  /**
   * Acquires the lock; does nothing if this process already holds it.
   * @throws {LockedError} if another process holds the lock
   * @throws {Error} if the file system has no Unix sockets, or is full
   */
  async hold () {
    while (!this.#isHeld()) {
      const found = this.#found()
      const holder = await withShortPath(this.#folder, NAME, askHolder)
      if (holder !== undefined) throw new LockedError(holder)
      await this.#replace(found)
    }
  }

  release () {
    if (this.#isHeld()) fs.rmSync(path.join(this.#folder, NAME), { force: true })
    this.#server?.close()
    this.#server = undefined
  }

  /** @returns {number | undefined} inode of the present lock, whoever holds it */
  #found () {
    return fs.lstatSync(path.join(this.#folder, NAME), { throwIfNoEntry: false })?.ino
  }

  #isHeld () {
    return this.#server !== undefined && this.#found() === this.#inode
  }

  /**
   * @param {number | undefined} abandoned inode of the lock to replace; nothing happens if another
   *   lock has replaced it meanwhile
   */
  async #replace (abandoned) {
    const name = `${NAME}-${randomUUID().slice(0, 8)}`
    const own = path.join(this.#folder, name)
    const file = path.join(this.#folder, NAME)
    this.#server?.close()
    this.#server = await withShortPath(this.#folder, name, listen)
    try {
      // Every user with access to the folder may connect to ask for the holder, so the check also
      // works after a change of the exporter's user.
      fs.chmodSync(own, 0o666)
      this.#inode = fs.lstatSync(own).ino
      if (abandoned === undefined) return placeNew(own, file)
      if (this.#found() === abandoned) fs.renameSync(own, file)
      await new Promise(resolve => setTimeout(resolve, CONTEST_MS))
    } finally {
      fs.rmSync(own, { force: true })
    }
  }
}

/**
 * Gives a new lock its final name. link() never replaces a lock that another process created
 * meanwhile.
 * @param {string} own
 * @param {string} file
 */
function placeNew (own, file) {
  try {
    fs.linkSync(own, file)
  } catch (error) {
    const isTaken = /** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST'
    if (!isTaken) fs.renameSync(own, file) // The file system has no hard links.
  }
}

/**
 * @param {string} file
 * @returns {Promise<net.Server>}
 */
function listen (file) {
  const server = net.createServer(socket => {
    socket.on('error', () => {}).end(`${process.pid} ${os.hostname()}`, () => socket.destroy())
  })
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(file, () => {
      server.removeListener('error', reject).on('error', () => {})
      resolve(server)
    })
  })
}

/**
 * @param {string} file
 * @returns {Promise<string | undefined>} the holder; undefined without one
 */
function askHolder (file) {
  return new Promise(resolve => {
    let text = ''
    let free = false
    const socket = net.connect(file)
    socket.setEncoding('latin1').setTimeout(ANSWER_WITHIN_MS, () => socket.destroy())
    socket.on('data', chunk => { if ((text += chunk).length > 300) socket.destroy() })
    socket.on('error', error => {
      free = FREE.includes(/** @type {NodeJS.ErrnoException} */ (error).code ?? '')
    })
    socket.on('close', () => resolve(free ? undefined : sayHolder(text)))
  })
}

/** @param {string} text */
function sayHolder (text) {
  if (!HOLDER.test(text)) return 'a process that does not answer'
  const [pid, host] = text.split(' ')
  return `process ${pid} on ${host}`
}

/**
 * Runs an action with the path of a file in a folder. If the path is too long for a socket, the
 * action gets a path through a descriptor of the folder.
 * @template T
 * @param {string} folder
 * @param {string} name
 * @param {(file: string) => Promise<T>} act
 * @returns {Promise<T>}
 */
async function withShortPath (folder, name, act) {
  const file = path.join(folder, name)
  if (Buffer.byteLength(file) <= MAX_PATH_BYTES) return act(file)
  const fd = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY)
  try {
    return await act(`/proc/self/fd/${fd}/${name}`)
  } finally {
    fs.closeSync(fd)
  }
}

module.exports = { FolderLock, LockedError }

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { createHash, randomUUID } = require('node:crypto')
const { rebuild } = require('../data-folder/contract')
const { Quarantine } = require('../data-folder/quarantine')
const { openRegularFile, readRegularFile } = require('../data-folder/regular-file')
const { makeFolder } = require('../make-folder')
const { capture } = require('./schema')

/** Record of a capture, in its folder. */
const RECORD = 'capture.json'
/** Size limit of a record. Ten suspects with a line each take some kilobytes. */
const MAX_RECORD_BYTES = 2 ** 18
const ID = /^[0-9a-f-]{36}$/
const PART = /^[a-z]{1,32}$/

/** Defaults of the command line: config.js. */
const DEFAULT_MAX_BYTES = 512 * 2 ** 20
const DEFAULT_KEEP_SECONDS = 86_400

/**
 * Captures on disk, one folder each, with the parts and a record. Only this user can read them.
 * Their total size is bounded, and so is their age by the wall clock. If somebody sets the clock,
 * captures expire earlier or later. A capture without a record is unfinished, and is removed.
 */
class CaptureStore {
  #folder
  #maxBytes
  #keepMs
  #now
  #quarantine
  /** @type {Map<string, { record: any, bytes: number }>} oldest first */
  #kept = new Map()
  /** Bytes of unfinished captures. */
  #writing = 0
  #temporary = false

  /**
   * @param {string} folder
   * @param {{ maxBytes: number, keepMs: number, now?: () => number, quarantine?: Quarantine }}
   *   options quarantine: receives unreadable files
   */
  constructor (folder, { maxBytes, keepMs, now = Date.now, quarantine = new Quarantine(folder) }) {
    this.#folder = folder
    this.#maxBytes = maxBytes
    this.#keepMs = keepMs
    this.#now = now
    this.#quarantine = quarantine
  }

  /**
   * @param {object} options
   * @param {string} [options.folder] folder in which captures survive this process; without one
   *   they are deleted when it ends
   * @param {number} [options.maxBytes]
   * @param {number} [options.keepSeconds]
   * @param {Quarantine} [options.quarantine]
   */
  static of ({
    folder,
    quarantine,
    maxBytes = DEFAULT_MAX_BYTES,
    keepSeconds = DEFAULT_KEEP_SECONDS
  }) {
    // The folder is created with the first capture: without a writable disk, only captures fail.
    const store = new CaptureStore(
      folder ?? path.join(os.tmpdir(), `memwatch-captures-${randomUUID()}`),
      { maxBytes, keepMs: 1000 * keepSeconds, quarantine }
    )
    store.#temporary = folder === undefined
    return store
  }

  /** Deletes the files that must not outlive this process. */
  close () {
    if (this.#temporary) fs.rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Bytes on disk. */
  get bytes () {
    return [...this.#kept.values()].reduce((sum, { bytes }) => sum + bytes, this.#writing)
  }

  /** Records, oldest first. @returns {any[]} */
  get all () {
    return [...this.#kept.values()].map(({ record }) => record)
  }

  /**
   * Writes a part as it arrives. Older captures are deleted to make room.
   * @param {string} id
   * @param {string} part
   * @param {AsyncIterable<Buffer>} chunks
   * @returns {Promise<{ bytes: number, sha256: string }>}
   * @throws {Error} if writing fails; the part is removed then
   */
  async write (id, part, chunks) {
    const file = this.fileOf(id, part)
    makeFolder(path.dirname(file))
    const handle = await fs.promises.open(file, 'wx', 0o600)
    const hash = createHash('sha256')
    let bytes = 0
    let complete = false
    try {
      for await (const chunk of chunks) {
        bytes += chunk.length
        this.#writing += chunk.length
        this.#makeRoom()
        hash.update(chunk)
        await handle.appendFile(chunk)
      }
      complete = true
      return { bytes, sha256: hash.digest('hex') }
    } finally {
      this.#writing -= bytes
      await handle.close()
      if (!complete) fs.rmSync(file, { force: true })
    }
  }

  /**
   * Completes a capture. From now on it stays until it expires or must make room.
   * @param {{ id: string, parts: { bytes: number }[] } & Record<string, unknown>} record
   */
  keep (record) {
    this.#record(record)
    this.#kept.set(record.id, {
      record,
      bytes: record.parts.reduce((sum, { bytes }) => sum + bytes, 0)
    })
    this.tidy()
  }

  /**
   * Saves changed fields of a kept record.
   * @param {string} id
   * @param {Record<string, unknown>} changes
   */
  change (id, changes) {
    const kept = this.#kept.get(id)
    if (kept) this.#record(Object.assign(kept.record, changes))
  }

  /** @param {{ id: string } & Record<string, unknown>} record */
  #record (record) {
    const file = path.join(this.#folder, record.id, RECORD)
    fs.rmSync(`${file}.new`, { force: true })
    fs.writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600, flag: 'wx' })
    fs.renameSync(`${file}.new`, file)
  }

  /**
   * Renames a part of an unfinished capture. An existing part with the new name is replaced.
   * @param {string} id
   * @param {string} part
   * @param {string} name
   */
  renamePart (id, part, name) {
    fs.renameSync(this.fileOf(id, part), this.fileOf(id, name))
  }

  /**
   * @param {string} id
   * @param {string} part
   * @returns {string} path
   * @throws {Error} for an invalid id or part
   */
  fileOf (id, part) {
    if (!ID.test(id) || !PART.test(part)) throw new Error(`no capture ${id}, or no part ${part}`)
    return path.join(this.#folder, id, part)
  }

  /**
   * @param {string} id
   * @param {string} part
   * @returns {fs.ReadStream | undefined} content of the part; undefined if it no longer exists, or
   *   is not a file
   */
  read (id, part) {
    try {
      return fs.createReadStream('', { fd: openRegularFile(this.fileOf(id, part)).fd })
    } catch {
      return undefined
    }
  }

  /**
   * Removes a capture. If the disk fails to remove a file, the next exporter removes it as expired
   * or unfinished.
   * @param {string} id
   */
  remove (id) {
    this.#kept.delete(id)
    if (!ID.test(id)) return
    try {
      if (isFolder(this.#folder)) {
        fs.rmSync(path.join(this.#folder, id), { recursive: true, force: true })
      }
    } catch {}
  }

  /** Removes expired captures. */
  tidy () {
    for (const [id, { record }] of this.#kept) {
      if (this.#now() - record.requestedUnixMs > this.#keepMs) this.remove(id)
    }
    this.#makeRoom()
  }

  /** @throws {Error} if all remaining captures are unfinished */
  #makeRoom () {
    for (const id of this.#kept.keys()) {
      if (this.bytes <= this.#maxBytes) return
      this.remove(id)
    }
    if (this.bytes > this.#maxBytes) {
      throw new Error(`more than the ${this.#maxBytes} bytes that --captures-max allows`)
    }
  }

  /**
   * Restores captures stored by an earlier exporter. A capture with an unreadable record is moved
   * aside.
   */
  restore () {
    // If the folder were a link, the exporter would delete other files in its target as unfinished
    // captures.
    if (!isFolder(this.#folder)) this.#quarantine.add(this.#folder, 'not a folder')
    const records = foldersIn(this.#folder).flatMap(id => this.#load(id) ?? [])
    records.sort((a, b) => a.requestedUnixMs - b.requestedUnixMs)
    for (const record of records) {
      this.#kept.set(record.id, {
        record,
        bytes: record.parts.reduce(
          (/** @type {number} */ sum, /** @type {{ bytes: number }} */ { bytes }) => sum + bytes,
          0
        )
      })
    }
    this.tidy()
  }

  /**
   * @param {string} id
   * @returns {any} record; undefined if the capture is unfinished or unreadable
   */
  #load (id) {
    const folder = path.join(this.#folder, id)
    try {
      if (!isFolder(folder)) throw new Error('not a folder')
      const record = rebuild(
        capture,
        JSON.parse(
          readRegularFile(path.join(folder, RECORD), { maxBytes: MAX_RECORD_BYTES }).toString(
            'utf8'
          )
        )
      )
      if (record?.id !== id || record.state !== 'done') {
        throw new Error(`${RECORD} does not fit its contract`)
      }
      for (const { part, bytes } of record.parts) {
        if (bytesOf(this.fileOf(id, part)) !== bytes) {
          throw new Error(`${part} differs from the captured content`)
        }
      }
      return record
    } catch (error) {
      const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
      if (code === 'ENOENT') this.remove(id)
      else this.#quarantine.add(folder, message)
    }
  }
}

/**
 * @param {string} folder
 * @returns {boolean} false for a link to a folder; true if it does not exist yet
 */
const isFolder = folder => fs.lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? true

/**
 * @param {string} file
 * @returns {number}
 * @throws {Error} if it is not a regular file
 */
function bytesOf (file) {
  const { fd, bytes } = openRegularFile(file)
  fs.closeSync(fd)
  return bytes
}

/**
 * @param {string} folder
 * @returns {string[]} names of folders that are ids; empty if the folder does not exist
 */
function foldersIn (folder) {
  try {
    return fs.readdirSync(folder).filter(name => ID.test(name))
  } catch {
    return []
  }
}

module.exports = { CaptureStore, DEFAULT_KEEP_SECONDS, DEFAULT_MAX_BYTES }

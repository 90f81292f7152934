'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { steadyUnixMs } = require('../clock')
const { makeFolder } = require('../make-folder')
const { packRecord, unpackRecords } = require('./records')

/** A segment is closed, and another begun, at this size or age: what is too old is removed a segment at a time. */
const SEGMENT_BYTES = 4 * 2 ** 20
/** What was written is put on disk at least this often: a machine that loses power loses no more. A process that dies loses none of it. */
const SYNC_EVERY_MS = 30_000
/** After a disk that failed, it is tried again. */
const RETRY_AFTER_MS = 30_000
/** What waits for a slow disk. More is dropped, and counted. */
const MAX_WAITING_BYTES = 16 * 2 ** 20

const NAME = /^([a-z0-9]+)-(\d{15})\.segment$/

/**
 * @typedef {object} Family records of one kind, in segments of their own
 * @property {string} name lower-case letters and digits
 * @property {number} keepMs how long a segment is kept after its last record
 * @property {number} segmentMs how long one is written to
 *
 * @typedef {object} Place where a record is
 * @property {string} file
 * @property {number} offset
 * @property {number} length
 *
 * @typedef {{ file: string, family: string, sequence: number, bytes: number, writtenMs: number }} SegmentFile
 * @typedef {{ fd: number, file: string, bytes: number, openedMs: number }} Open
 */

/**
 * Records on disk, in append-only files. A disk that is full or read-only fails nobody: `failure` says what is wrong, what comes meanwhile
 * is not saved, and it is tried again.
 */
class Segments {
  #folder
  #families
  #maxBytes
  #now
  #onFailure
  /** @type {Map<string, Open>} by family */
  #open = new Map()
  /** When each file was last written to, by the steady clock. @type {Map<string, number>} */
  #written = new Map()
  #sequence = 0
  /** @type {{ family: string, packed: Buffer[], bytes: number, done: (places: Place[] | undefined) => void }[]} */
  #waiting = []
  #writing = Promise.resolve()
  #waitingBytes = 0
  #retryAtMs = 0
  #syncedAtMs = 0
  /** Bytes of all segments. */
  bytes = 0
  /** Damaged ends that were skipped while reading. */
  torn = 0
  /** Records that were not saved. */
  dropped = 0
  /** What is wrong with the disk, now. @type {Error | undefined} */
  failure

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families in the order in which they are given up when there is no more room
   * @param {number} options.maxBytes of all segments
   * @param {(failure: Error | undefined) => void} [options.onFailure] told when the disk fails, and when it is well again
   * @param {() => number} [options.now] ms, that do not jump: what was written must not look old because somebody set the clock
   */
  constructor (folder, { families, maxBytes, onFailure = () => {}, now = steadyUnixMs }) {
    this.#folder = folder
    this.#families = families
    this.#maxBytes = maxBytes
    this.#onFailure = onFailure
    this.#now = now
    this.#sequence = Math.max(0, ...this.#files().map(({ sequence }) => sequence))
  }

  /**
   * All records of a family, oldest first. What is damaged is skipped and counted.
   * @param {string} family
   * @param {(record: { meta: any, bytes: Buffer, place: Place }) => void} take
   */
  read (family, take) {
    for (const { file } of this.#files().filter(found => found.family === family)) {
      let segment
      try {
        segment = fs.readFileSync(file)
      } catch {
        this.torn++
        continue
      }
      const { records, tornBytes } = unpackRecords(segment)
      if (tornBytes > 0) this.torn++
      for (const { meta, bytes, offset, length } of records) take({ meta, bytes, place: { file, offset, length } })
    }
  }

  /** @param {Place} place @returns {Buffer} its bytes @throws {Error} when it is gone or damaged */
  readAt ({ file, offset, length }) {
    const fd = fs.openSync(file, 'r')
    try {
      const record = Buffer.alloc(length)
      fs.readSync(fd, record, 0, length, offset)
      const [found] = unpackRecords(record).records
      if (!found) throw new Error(`${file}: no record at ${offset}`)
      return found.bytes
    } finally {
      fs.closeSync(fd)
    }
  }

  /**
   * @param {string} family
   * @param {{ meta: import('./records').RecordMeta, bytes?: Buffer }[]} records
   * @returns {Promise<Place[] | undefined>} where they are; undefined when they were not saved
   */
  append (family, records) {
    const packed = records.map(({ meta, bytes }) => packRecord(meta, bytes))
    const bytes = packed.reduce((sum, { length }) => sum + length, 0)
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES || this.#now() < this.#retryAtMs) {
      this.dropped += records.length
      return Promise.resolve(undefined)
    }
    this.#waitingBytes += bytes
    return new Promise(resolve => {
      this.#waiting.push({ family, packed, bytes, done: resolve })
      if (this.#waiting.length === 1) this.#writing = this.#writing.then(() => this.#writeWaiting())
    })
  }

  /** All that waits, of a family at once: what came during one write goes with the next. */
  async #writeWaiting () {
    const waiting = this.#waiting
    this.#waiting = []
    for (const { name } of this.#families) {
      const batch = waiting.filter(({ family }) => family === name)
      if (batch.length === 0) continue
      const places = await this.#write(name, batch.flatMap(({ packed }) => packed))
      for (const { packed, bytes, done } of batch) {
        this.#waitingBytes -= bytes
        if (!places) this.dropped += packed.length
        done(places?.splice(0, packed.length))
      }
    }
  }

  /** Remove what is too old, or too much. */
  async tidy () {
    const now = this.#now()
    const files = this.#files()
    const inUse = new Set([...this.#open.values()].map(({ file }) => file))
    this.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    /** @param {SegmentFile} found */
    const remove = found => {
      fs.rmSync(found.file, { force: true })
      this.#written.delete(found.file)
      this.bytes -= found.bytes
    }
    try {
      for (const { name, keepMs, segmentMs } of this.#families) {
        const closed = files.filter(({ family, file }) => family === name && !inUse.has(file))
        const spare = closed.length - mostSegments(keepMs, segmentMs)
        closed.forEach((found, i) => { if (i < spare || now - found.writtenMs > keepMs) remove(found) })
      }
      for (const { name } of this.#families) {
        for (const found of this.#files().filter(({ family, file }) => family === name && !inUse.has(file))) {
          if (this.bytes <= this.#maxBytes) break
          remove(found)
        }
      }
      if (now - this.#syncedAtMs >= SYNC_EVERY_MS) {
        this.#syncedAtMs = now
        await Promise.all([...this.#open.values()].map(({ fd }) => fsync(fd)))
      }
    } catch (error) {
      this.#fail(/** @type {Error} */ (error))
    }
  }

  /** When all that was appended so far is written, or dropped. */
  written () {
    return this.#writing
  }

  /** Write what waits, and close. */
  async close () {
    await this.#writing
    for (const { fd } of this.#open.values()) {
      await fsync(fd).catch(() => {})
      fs.closeSync(fd)
    }
    this.#open.clear()
  }

  /** @param {string} family @param {Buffer[]} packed @returns {Promise<Place[] | undefined>} */
  async #write (family, packed) {
    try {
      const open = await this.#segment(family)
      const bytes = Buffer.concat(packed)
      let offset = open.bytes
      for (let written = 0; written < bytes.length;) written += await write(open.fd, bytes.subarray(written), open.bytes + written)
      open.bytes += bytes.length
      this.#written.set(open.file, this.#now())
      this.bytes += bytes.length
      if (this.failure) {
        this.failure = undefined
        this.#onFailure(undefined)
      }
      return packed.map(({ length }) => {
        const place = { file: open.file, offset, length }
        offset += length
        return place
      })
    } catch (error) {
      this.#fail(/** @type {Error} */ (error))
      // What was written in part is a torn end: the next try begins a new segment.
      const open = this.#open.get(family)
      this.#open.delete(family)
      if (open) fs.closeSync(open.fd)
      return undefined
    }
  }

  /** The segment that a family is written to now. @param {string} family @returns {Promise<Open>} */
  async #segment (family) {
    const now = this.#now()
    const { segmentMs } = /** @type {Family} */ (this.#families.find(({ name }) => name === family))
    const open = this.#open.get(family)
    if (open && open.bytes < SEGMENT_BYTES && now - open.openedMs < segmentMs) return open
    if (open) {
      this.#open.delete(family)
      await fsync(open.fd).catch(() => {})
      fs.closeSync(open.fd)
    }
    makeFolder(this.#folder)
    // Numbered, not dated: clocks jump.
    const file = path.join(this.#folder, `${family}-${String(++this.#sequence).padStart(15, '0')}.segment`)
    const fd = fs.openSync(file, 'wx', 0o600)
    const opened = { fd, file, bytes: 0, openedMs: now }
    this.#open.set(family, opened)
    return opened
  }

  /** @param {Error} error */
  #fail (error) {
    this.#retryAtMs = this.#now() + RETRY_AFTER_MS
    if (!this.failure) this.#onFailure(error)
    this.failure = error
  }

  /** Oldest first. @returns {SegmentFile[]} */
  #files () {
    /** @type {SegmentFile[]} */
    const found = []
    for (const name of readFolder(this.#folder)) {
      const [, family, sequence] = NAME.exec(name) ?? []
      if (!family) continue
      const file = path.join(this.#folder, name)
      const stats = fs.statSync(file, { throwIfNoEntry: false })
      if (!stats) continue
      let writtenMs = this.#written.get(file)
      // Of one from before this process only the wall clock would tell how old it is, and that may have been set: it is kept as if new.
      if (writtenMs === undefined) this.#written.set(file, writtenMs = this.#now())
      found.push({ file, family, sequence: Number(sequence), bytes: stats.size, writtenMs })
    }
    return found.sort((a, b) => a.sequence - b.sequence)
  }
}

/**
 * An exporter that is restarted again and again begins a segment each time: so many more than one life needs are kept.
 * @param {number} keepMs @param {number} segmentMs
 */
const mostSegments = (keepMs, segmentMs) => 16 + 4 * Math.ceil(keepMs / segmentMs)

/** @param {string} folder */
function readFolder (folder) {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

/** @param {number} fd @param {Buffer} bytes @param {number} position @returns {Promise<number>} */
const write = (fd, bytes, position) => new Promise((resolve, reject) => {
  fs.write(fd, bytes, 0, bytes.length, position, (error, written) => error ? reject(error) : resolve(written))
})

/** @param {number} fd @returns {Promise<void>} */
const fsync = fd => new Promise((resolve, reject) => {
  fs.fdatasync(fd, error => error ? reject(error) : resolve())
})

module.exports = { Segments }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { steadyUnixMs } = require('../clock')
const { makeFolder } = require('../make-folder')
const { packRecord, unpackRecords } = require('./records')
const { Segment } = require('./segment')
const { SegmentFiles } = require('./segment-files')

/** A segment is closed, and another begun, at this size or age: what is too old is removed a segment at a time. */
const SEGMENT_BYTES = 4 * 2 ** 20
/** What was written is put on disk at least this often: a machine that loses power loses no more. A process that dies loses none of it. */
const SYNC_EVERY_MS = 30_000
/** What waits for a slow disk. More is dropped, and counted. */
const MAX_WAITING_BYTES = 16 * 2 ** 20

/**
 * @typedef {import('./segment-files').Family} Family
 *
 * @typedef {object} Place where a record is
 * @property {string} file
 * @property {number} offset
 * @property {number} length
 */

/**
 * Records on disk, in append-only files. A disk that is full or read-only fails nobody: `failure` says what is wrong, what comes meanwhile
 * is not saved, and `ready` tells when it is well again.
 */
class Segments {
  #folder
  #families
  #files
  #now
  #onFailure
  /** @type {Map<string, Segment>} by family */
  #open = new Map()
  /** @type {{ family: string, packed: Buffer[], bytes: number, done: (places: Place[] | undefined) => void }[]} */
  #waiting = []
  #writing = Promise.resolve()
  #waitingBytes = 0
  /** The most that a write failed with. */
  #refusedBytes = 0
  #syncedAtMs = 0
  /** Damaged ends that were skipped while reading. */
  torn = 0
  /** Records that the disk did not take when they came. */
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
    this.#files = new SegmentFiles(folder, { families, maxBytes, now })
    this.#onFailure = onFailure
    this.#now = now
  }

  /** Bytes of all segments. */
  get bytes () {
    return this.#files.bytes
  }

  /**
   * All records of a family, oldest first. What is damaged is skipped and counted.
   * @param {string} family
   * @param {(record: { meta: any, bytes: Buffer, place: Place }) => void} take
   */
  read (family, take) {
    for (const { file } of this.#files.all().filter(found => found.family === family)) {
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
   * Whether it is worth putting records together. After a failure the disk is tried, with as much as it did not take: a little fits where
   * what waits does not.
   * @returns {Promise<boolean>}
   */
  async ready () {
    if (!this.failure) return true
    await this.#writing
    const probe = path.join(this.#folder, 'probe')
    try {
      makeFolder(this.#folder)
      await fs.promises.writeFile(probe, Buffer.alloc(this.#refusedBytes), { mode: 0o600 })
      this.#refusedBytes = 0
      return true
    } catch {
      return false
    } finally {
      await fs.promises.rm(probe, { force: true }).catch(() => {})
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
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
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

  /** Remove what is too old, or too much, and see that what is written is on disk. */
  async tidy () {
    const open = [...this.#open.values()]
    try {
      this.#files.tidy(new Set(open.map(({ file }) => file)))
      if (this.#now() - this.#syncedAtMs >= SYNC_EVERY_MS) {
        this.#syncedAtMs = this.#now()
        await Promise.all(open.map(segment => segment.sync()))
      }
    } catch (error) {
      this.#fail(/** @type {Error} */ (error), 0)
    }
  }

  /** When all that was appended so far is written, or dropped. */
  written () {
    return this.#writing
  }

  /** Write what waits, and close. */
  async close () {
    await this.#writing
    for (const segment of this.#open.values()) await segment.close()
    this.#open.clear()
  }

  /** @param {string} family @param {Buffer[]} packed @returns {Promise<Place[] | undefined>} */
  async #write (family, packed) {
    const bytes = Buffer.concat(packed)
    try {
      const segment = await this.#segment(family)
      let offset = segment.bytes
      await segment.append(bytes)
      this.#files.wrote(segment.file, bytes.length)
      this.#well(bytes.length)
      return packed.map(({ length }) => {
        const place = { file: segment.file, offset, length }
        offset += length
        return place
      })
    } catch (error) {
      this.#fail(/** @type {Error} */ (error), bytes.length)
      if (!await this.#open.get(family)?.takeBack()) this.#open.delete(family)
      return undefined
    }
  }

  /** The segment that a family is written to now. @param {string} family */
  async #segment (family) {
    const now = this.#now()
    const { segmentMs } = /** @type {Family} */ (this.#families.find(({ name }) => name === family))
    const open = this.#open.get(family)
    if (open && open.bytes < SEGMENT_BYTES && now - open.openedMs < segmentMs) return open
    this.#open.delete(family)
    await open?.close()
    makeFolder(this.#folder)
    const segment = new Segment(this.#files.next(family), now)
    this.#open.set(family, segment)
    return segment
  }

  /** @param {number} bytes that were written: fewer than were refused do not tell that all is well again */
  #well (bytes) {
    if (!this.failure || bytes < this.#refusedBytes) return
    this.failure = undefined
    this.#onFailure(undefined)
  }

  /** @param {Error} error @param {number} refusedBytes */
  #fail (error, refusedBytes) {
    this.#refusedBytes = Math.max(refusedBytes, this.#refusedBytes)
    if (!this.failure) this.#onFailure(error)
    this.failure = error
  }
}

module.exports = { Segments }

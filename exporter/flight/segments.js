'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { steadyUnixMs } = require('../clock')
const { Quarantine } = require('../data-folder/quarantine')
const { openRegularFile, readBytes, readRegularFile } = require('../data-folder/regular-file')
const { makeFolder } = require('../make-folder')
const { packRecord, unpackRecords } = require('./records')
const { Segment } = require('./segment')
const { SegmentFiles } = require('./segment-files')

/**
 * Size and age at which a segment is closed and the next begins. Expired data is removed one
 * segment at a time.
 */
const SEGMENT_BYTES = 4 * 2 ** 20
/**
 * Longest interval between two syncs: data since the last sync is lost if the machine loses power.
 * If only the process dies, it is not lost.
 */
const SYNC_EVERY_MS = 30_000
/** Upper bound of bytes that wait for a slow disk. Further bytes are dropped, and counted. */
const MAX_WAITING_BYTES = 16 * 2 ** 20
/** Upper bound of a segment: a nearly full segment may receive all waiting records. */
const MAX_SEGMENT_BYTES = SEGMENT_BYTES + MAX_WAITING_BYTES

/**
 * @typedef {import('./segment-files').Family} Family
 *
 * @typedef {object} Place position of a record
 * @property {string} file
 * @property {number} offset
 * @property {number} length
 */

/**
 * Records on disk, in append-only files. A full or read-only disk never causes an exception:
 * `failure` describes the problem, records are not saved meanwhile, and `ready` checks for a
 * recovery.
 */
class Segments {
  #folder
  #families
  #files
  #now
  #onFailure
  #decode
  #quarantine
  /** @type {Map<string, Segment>} open segments by family */
  #open = new Map()
  /**
   * @type {{ family: string, packed: Buffer[], bytes: number, done: (places: Place[] | undefined)
   *   => void }[]}
   */
  #waiting = []
  #writing = Promise.resolve()
  #waitingBytes = 0
  /** Size of the largest failed write. */
  #refusedBytes = 0
  #syncedAtMs = 0
  /** Number of damaged ends, files and records skipped while reading. */
  torn = 0
  /** Number of records that the disk did not accept. */
  dropped = 0
  /** Present error of the disk. @type {Error | undefined} */
  failure

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families families in the order of deletion if space runs out
   * @param {number} options.maxBytes of all segments
   * @param {(failure: Error | undefined) => void} [options.onFailure] called when the disk fails,
   *   and when it works again
   * @param {() => number} [options.now] returns monotonic ms, so that files do not look old after
   *   the clock was set
   * @param {(record: { meta: unknown, bytes: Buffer }, family: string) => any} [options.decode]
   *   rebuilds the meta of a record from its contract; returns undefined if it does not fit
   * @param {Quarantine} [options.quarantine]
   */
  constructor (
    folder,
    {
      families,
      maxBytes,
      onFailure = () => {},
      now = steadyUnixMs,
      decode = ({ meta }) => meta,
      quarantine = new Quarantine(folder)
    }
  ) {
    this.#folder = folder
    this.#decode = decode
    this.#quarantine = quarantine
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
   * Reads all records of a family, oldest first. A damaged end is skipped and counted. A file that
   * is not a segment, or contains a record that does not fit, is moved aside.
   * @param {string} family
   * @param {(record: { meta: any, bytes: Buffer, place: Place }) => void} take receives each
   *   record; bytes: a slice of the segment
   */
  read (family, take) {
    for (const file of this.#files.readable(family)) {
      for (const record of this.#readSegment(file, family)) take(record)
    }
  }

  /**
   * @param {string} file
   * @param {string} family
   * @returns {{ meta: any, bytes: Buffer, place: Place }[]}
   */
  #readSegment (file, family) {
    let segment
    try {
      segment = readRegularFile(file, { maxBytes: MAX_SEGMENT_BYTES })
    } catch (error) {
      this.#setAside(file, 1, /** @type {Error} */ (error).message)
      return []
    }
    const { records, tornBytes } = unpackRecords(segment)
    if (tornBytes > 0) this.torn++
    const fitting = records.flatMap(({ meta, bytes, offset, length }) => {
      const decoded = this.#decode({ meta, bytes }, family)
      return decoded === undefined
        ? []
        : [{ meta: decoded, bytes, place: { file, offset, length } }]
    })
    const unfit = records.length - fitting.length
    if (unfit === 0) return fitting
    this.#setAside(file, unfit, `${unfit} of ${records.length} records do not fit their contract`)
    return fitting.length === 0 ? [] : rewritten(file, segment, fitting)
  }

  /**
   * @param {string} file
   * @param {number} count
   * @param {string} reason
   */
  #setAside (file, count, reason) {
    this.torn += count
    this.#files.forget(file)
    this.#quarantine.add(file, reason)
  }

  /**
   * @param {Place} place
   * @returns {Buffer} bytes of the record
   * @throws {Error} if the record is gone or damaged
   */
  readAt ({ file, offset, length }) {
    const { fd } = openRegularFile(file)
    try {
      const [found] = unpackRecords(readBytes(fd, length, offset)).records
      if (!found) throw new Error(`${file}: no record at ${offset}`)
      return found.bytes
    } finally {
      fs.closeSync(fd)
    }
  }

  /**
   * True if somebody removed the written files. Then the open files are closed, and new ones are
   * started.
   * @returns {Promise<boolean>}
   */
  async removed () {
    await this.#writing
    const open = [...this.#open]
    const removed = open.filter(([, segment]) => segment.isRemoved)
    for (const [family, segment] of removed) {
      this.#open.delete(family)
      await segment.close()
    }
    if (removed.length > 0) {
      this.fail(
        new Error(`${this.#folder} was emptied or removed: the exporter saves the history in ` +
          'memory again')
      )
    }
    return removed.length > 0
  }

  /**
   * True if records can probably be written. After a failure, this method writes a test file as
   * large as the refused data, because a smaller file might still fit.
   * @returns {Promise<boolean>}
   */
  async ready () {
    if (!this.failure) return true
    await this.#writing
    const probe = path.join(this.#folder, 'probe')
    try {
      makeFolder(this.#folder)
      await fs.promises.rm(probe, { force: true })
      await fs.promises.writeFile(probe, Buffer.alloc(this.#refusedBytes), {
        mode: 0o600,
        flag: 'wx'
      })
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
   * @returns {Promise<Place[] | undefined>} positions of the records; undefined if they were not
   *   saved
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

  /**
   * Writes all waiting records of a family at once; records that arrive during the write are part
   * of the next one.
   */
  async #writeWaiting () {
    const waiting = this.#waiting
    this.#waiting = []
    for (const { name } of this.#families) {
      const batch = waiting.filter(({ family }) => family === name)
      if (batch.length === 0) continue
      const places = await this.#write(
        name,
        batch.flatMap(({ packed }) => packed)
      )
      for (const { packed, bytes, done } of batch) {
        this.#waitingBytes -= bytes
        if (!places) this.dropped += packed.length
        done(places?.splice(0, packed.length))
      }
    }
  }

  /** Removes expired segments, and flushes the written ones to disk. */
  async tidy () {
    const open = [...this.#open.values()]
    try {
      await this.#files.tidy(new Set(open.map(({ file }) => file)))
      if (this.#now() - this.#syncedAtMs >= SYNC_EVERY_MS) {
        this.#syncedAtMs = this.#now()
        await Promise.all(open.map(segment => segment.sync()))
      }
    } catch (error) {
      this.fail(/** @type {Error} */ (error))
    }
  }

  /** Resolves when all appended records are written or dropped. */
  written () {
    return this.#writing
  }

  /** Writes the waiting records, and closes. */
  async close () {
    await this.#writing
    for (const segment of this.#open.values()) await segment.close()
    this.#open.clear()
  }

  /**
   * @param {string} family
   * @param {Buffer[]} packed
   * @returns {Promise<Place[] | undefined>}
   */
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
      this.fail(/** @type {Error} */ (error), bytes.length)
      if (!(await this.#open.get(family)?.takeBack())) this.#open.delete(family)
      return undefined
    }
  }

  /** The segment to which a family is written at present. @param {string} family */
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

  /**
   * @param {number} bytes number of written bytes; if it is smaller than a refused write, the disk
   *   may still be full
   */
  #well (bytes) {
    if (!this.failure || bytes < this.#refusedBytes) return
    this.failure = undefined
    this.#onFailure(undefined)
  }

  /**
   * Reports a failing disk until a write succeeds.
   * @param {Error} error
   * @param {number} [refusedBytes]
   */
  fail (error, refusedBytes = 0) {
    this.#refusedBytes = Math.max(refusedBytes, this.#refusedBytes)
    if (!this.failure) this.#onFailure(error)
    this.failure = error
  }
}

/**
 * Replaces a segment by a file with only its valid records.
 * @param {string} file path of a file that was already removed
 * @param {Buffer} segment
 * @param {{ meta: any, bytes: Buffer, place: Place }[]} records
 */
function rewritten (file, segment, records) {
  let end = 0
  const moved = records.map(({ meta, bytes, place: { length } }) => ({
    meta,
    bytes,
    place: { file, offset: (end += length) - length, length }
  }))
  try {
    fs.writeFileSync(
      file,
      Buffer.concat(
        records.map(({ place: { offset, length } }) => segment.subarray(offset, offset + length))
      ),
      { mode: 0o600, flag: 'wx' }
    )
  } catch {} // On a full disk, only records already restored to memory survive.
  return moved
}

module.exports = { Segments }

'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * Pattern of file names, with 15 digits. The first digit is 0, so that the number after the largest
 * valid one still fits.
 */
const NAME = /^([a-z0-9]+)-(0\d{14})\.segment$/

const SPARE_SEGMENTS = 300

/**
 * @typedef {object} Family records of one kind, stored in segments of their own
 * @property {string} name lower-case letters and digits
 * @property {number} keepMs time for which a segment is kept after its last record
 * @property {number} segmentMs time for which a segment is written
 *
 * @typedef {{ file: string, family: string, sequence: number, bytes: number, writtenMs: number }}
 *   SegmentFile
 */

/**
 * Files in a folder of segments: lists the present files, names the next one, and deletes old ones.
 */
class SegmentFiles {
  #folder
  #families
  #maxBytes
  #now
  /** Time of the last write to each file, by the monotonic clock. @type {Map<string, number>} */
  #written = new Map()
  #sequence
  /** Bytes of all files. */
  bytes = 0

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families families in the order of deletion if space runs out
   * @param {number} options.maxBytes limit of the bytes of all files
   * @param {() => number} options.now ms, monotonic
   */
  constructor (folder, { families, maxBytes, now }) {
    this.#folder = folder
    this.#families = families
    this.#maxBytes = maxBytes
    this.#now = now
    this.#sequence = this.#names().at(-1)?.sequence ?? 0
  }

  /**
   * Lists the segments of a family for restoring. Their number is limited, because another user may
   * have put any number of files into the folder.
   * @param {string} family
   * @returns {string[]} paths, oldest first
   */
  readable (family) {
    const most = this.#families.find(({ name }) => name === family)
    return this.#names()
      .filter(found => found.family === family)
      .slice(most ? -mostSegments(most) : 0)
      .map(({ file }) => file)
  }

  /** Names of the files, oldest first. */
  #names () {
    return readFolder(this.#folder).flatMap(name => {
      const [, family, sequence] = NAME.exec(name) ?? []
      return family
        ? [{ file: path.join(this.#folder, name), family, sequence: Number(sequence) }]
        : []
    }).sort((a, b) => a.sequence - b.sequence)
  }

  /** All segment files, oldest first. @returns {SegmentFile[]} */
  #all () {
    return this.#names().flatMap(found => {
      const stats = fs.lstatSync(found.file, { throwIfNoEntry: false })
      if (!stats) return []
      let writtenMs = this.#written.get(found.file)
      // The age of a file from an earlier process is known only by the wall clock, which may have
      // been set since. So the file counts as new.
      if (writtenMs === undefined) this.#written.set(found.file, writtenMs = this.#now())
      return [{ ...found, bytes: stats.size, writtenMs }]
    })
  }

  /**
   * Names the next file. Names contain a number and no date, because clocks jump.
   * @param {string} family
   * @returns {string} path of a new file
   */
  next (family) {
    return path.join(
      this.#folder,
      `${family}-${String(++this.#sequence).padStart(15, '0')}.segment`
    )
  }

  /**
   * @param {string} file
   * @param {number} bytes additional bytes
   */
  wrote (file, bytes) {
    this.#written.set(file, this.#now())
    this.bytes += bytes
  }

  /**
   * Removes expired files, and the oldest beyond the size limit.
   * @param {Set<string>} inUse files to keep
   * @throws {Error} of the file system
   */
  async tidy (inUse) {
    const now = this.#now()
    const files = this.#all()
    this.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    /** @type {SegmentFile[]} in the order of deletion */
    const kept = []
    for (const family of this.#families) {
      const closed = files.filter(found => found.family === family.name && !inUse.has(found.file))
      const spare = closed.length - mostSegments(family)
      for (const [i, found] of closed.entries()) {
        if (i < spare || now - found.writtenMs > family.keepMs) await this.#remove(found)
        else kept.push(found)
      }
    }
    for (const found of kept) {
      if (this.bytes <= this.#maxBytes) break
      await this.#remove(found)
    }
  }

  /**
   * Removes a file. The removal is asynchronous, so that other work runs between the removals of up
   * to twenty thousand files.
   * @param {SegmentFile} found
   */
  async #remove ({ file, bytes }) {
    // unlink() takes a tenth of the time of rm(), which also handles folders.
    await fs.promises
      .unlink(file)
      .catch(() => fs.promises.rm(file, { recursive: true, force: true }))
    this.forget(file)
    this.bytes -= bytes
  }

  /** Forgets a removed file. @param {string} file */
  forget (file) {
    this.#written.delete(file)
  }
}

/**
 * Upper bound of segments of a family. It is larger than one process needs, because an exporter in
 * a restart loop begins a segment at each start. The seconds of ten minutes, which no full block
 * contains yet, may come from starts two seconds apart.
 * @param {Family} family
 */
const mostSegments = ({ keepMs, segmentMs }) => SPARE_SEGMENTS + 4 * Math.ceil(keepMs / segmentMs)

/** @param {string} folder */
function readFolder (folder) {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

module.exports = { SegmentFiles, SPARE_SEGMENTS }

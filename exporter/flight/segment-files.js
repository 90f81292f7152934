'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * Pattern of names. Largest valid number of a segment: the next one would be too long for a name.
 */
const NAME = /^([a-z0-9]+)-(0\d{14})\.segment$/

const SPARE_SEGMENTS = 300

/**
 * @typedef {object} Family records of one kind, in segments of their own
 * @property {string} name lower-case letters and digits
 * @property {number} keepMs time for which a segment is kept after its last record
 * @property {number} segmentMs time for which a segment is written
 *
 * @typedef {{ file: string, family: string, sequence: number, bytes: number, writtenMs: number }}
 *   SegmentFile
 */

/**
 * Files of a folder of segments: the present ones, the name of the next, and the ones to delete.
 */
class SegmentFiles {
  #folder
  #families
  #maxBytes
  #now
  /** Time of the last write of each, by the monotonic clock. @type {Map<string, number>} */
  #written = new Map()
  #sequence
  /** Bytes of all files. */
  bytes = 0

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families in the order of deletion when space runs out
   * @param {number} options.maxBytes of all
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
   * Limit of restored segments of a family: more than one process writes, but not any number that
   * another user may have put there.
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

  /** Oldest first. */
  #names () {
    return readFolder(this.#folder).flatMap(name => {
      const [, family, sequence] = NAME.exec(name) ?? []
      return family
        ? [{ file: path.join(this.#folder, name), family, sequence: Number(sequence) }]
        : []
    }).sort((a, b) => a.sequence - b.sequence)
  }

  /** Oldest first. @returns {SegmentFile[]} */
  #all () {
    return this.#names().flatMap(found => {
      const stats = fs.lstatSync(found.file, { throwIfNoEntry: false })
      if (!stats) return []
      let writtenMs = this.#written.get(found.file)
      // Only the wall clock knows the age of a file from an earlier process, and it may have been
      // set: the file counts as new.
      if (writtenMs === undefined) this.#written.set(found.file, writtenMs = this.#now())
      return [{ ...found, bytes: stats.size, writtenMs }]
    })
  }

  /**
   * Numbered, not dated: clocks jump.
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
   * Deletes twenty thousand files in turns, beside the exporter's other work.
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
 * Segments kept beyond the need of one process, because an exporter in a restart loop begins one at
 * each start: the seconds of ten minutes, which no full block contains yet, in runs of two seconds.
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

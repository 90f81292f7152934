'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * Numbers that begin with another digit are nobody's: one more than the highest would be too long
 * for a name.
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
 * The files of a folder of segments: which there are, what the next is called, and which have to
 * go.
 */
class SegmentFiles {
  #folder
  #families
  #maxBytes
  #now
  /** When each was last written to, by a clock that does not jump. @type {Map<string, number>} */
  #written = new Map()
  #sequence
  /** Bytes of all files. */
  bytes = 0

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families in the order in which they are given up when there
   *   is no more room
   * @param {number} options.maxBytes of all
   * @param {() => number} options.now ms, that do not jump
   */
  constructor (folder, { families, maxBytes, now }) {
    this.#folder = folder
    this.#families = families
    this.#maxBytes = maxBytes
    this.#now = now
    this.#sequence = this.#names().at(-1)?.sequence ?? 0
  }

  /**
   * Those of a family that are worth reading: more than one life needs, and not all that somebody
   * may have put there.
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
      // Only the wall clock knows the age of one from before this process, and it may have been
      // set: it is kept as if new.
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
   * @param {number} bytes more
   */
  wrote (file, bytes) {
    this.#written.set(file, this.#now())
    this.bytes += bytes
  }

  /**
   * Removes expired files, and the oldest beyond the size limit.
   * @param {Set<string>} inUse that stay
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
   * Each of twenty thousand takes its turn beside the exporter's other work.
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

  /** It is not there any more. @param {string} file */
  forget (file) {
    this.#written.delete(file)
  }
}

/**
 * An exporter that is restarted again and again begins a segment each time. So many more than one
 * life needs are kept: the seconds of ten minutes, which no full block holds yet, in lives of two
 * seconds.
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

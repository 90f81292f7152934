'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** Numbers that begin with another digit are nobody's: one more than the highest would be too long for a name. */
const NAME = /^([a-z0-9]+)-(0\d{14})\.segment$/

const SPARE_SEGMENTS = 300

/**
 * @typedef {object} Family records of one kind, in segments of their own
 * @property {string} name lower-case letters and digits
 * @property {number} keepMs how long a segment is kept after its last record
 * @property {number} segmentMs how long one is written to
 *
 * @typedef {{ file: string, family: string, sequence: number, bytes: number, writtenMs: number }} SegmentFile
 */

/** The files of a folder of segments: which there are, what the next is called, and which have to go. */
class SegmentFiles {
  #folder
  #families
  #maxBytes
  #now
  /** When each was last written to, by a clock that does not jump. @type {Map<string, number>} */
  #written = new Map()
  #sequence
  /** Of all. */
  bytes = 0

  /**
   * @param {string} folder
   * @param {object} options
   * @param {readonly Family[]} options.families in the order in which they are given up when there is no more room
   * @param {number} options.maxBytes of all
   * @param {() => number} options.now ms, that do not jump
   */
  constructor (folder, { families, maxBytes, now }) {
    this.#folder = folder
    this.#families = families
    this.#maxBytes = maxBytes
    this.#now = now
    this.#sequence = this.all().at(-1)?.sequence ?? 0
  }

  /** Oldest first. @returns {SegmentFile[]} */
  all () {
    /** @type {SegmentFile[]} */
    const found = []
    for (const name of readFolder(this.#folder)) {
      const [, family, sequence] = NAME.exec(name) ?? []
      if (!family) continue
      const file = path.join(this.#folder, name)
      const stats = fs.lstatSync(file, { throwIfNoEntry: false })
      if (!stats) continue
      let writtenMs = this.#written.get(file)
      // Of one from before this process only the wall clock would tell how old it is, and that may have been set: it is kept as if new.
      if (writtenMs === undefined) this.#written.set(file, writtenMs = this.#now())
      found.push({ file, family, sequence: Number(sequence), bytes: stats.size, writtenMs })
    }
    return found.sort((a, b) => a.sequence - b.sequence)
  }

  /** Numbered, not dated: clocks jump. @param {string} family @returns {string} path of one that is not there yet */
  next (family) {
    return path.join(this.#folder, `${family}-${String(++this.#sequence).padStart(15, '0')}.segment`)
  }

  /** @param {string} file @param {number} bytes more */
  wrote (file, bytes) {
    this.#written.set(file, this.#now())
    this.bytes += bytes
  }

  /** Remove what is too old, or too much. @param {Set<string>} inUse that stay @throws {Error} what the file system throws */
  tidy (inUse) {
    const now = this.#now()
    const files = this.all()
    this.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    for (const { name, keepMs, segmentMs } of this.#families) {
      const closed = files.filter(({ family, file }) => family === name && !inUse.has(file))
      const spare = closed.length - mostSegments(keepMs, segmentMs)
      closed.forEach((found, i) => { if (i < spare || now - found.writtenMs > keepMs) this.#remove(found) })
    }
    for (const { name } of this.#families) {
      for (const found of this.all().filter(({ family, file }) => family === name && !inUse.has(file))) {
        if (this.bytes <= this.#maxBytes) break
        this.#remove(found)
      }
    }
  }

  /** @param {SegmentFile} found */
  #remove ({ file, bytes }) {
    fs.rmSync(file, { recursive: true, force: true })
    this.forget(file)
    this.bytes -= bytes
  }

  /** It is not there any more. @param {string} file */
  forget (file) {
    this.#written.delete(file)
  }
}

/**
 * An exporter that is restarted again and again begins a segment each time. So many more than one life needs are kept: the seconds of ten minutes, which no
 * full block holds yet, in lives of two seconds.
 * @param {number} keepMs @param {number} segmentMs
 */
const mostSegments = (keepMs, segmentMs) => SPARE_SEGMENTS + 4 * Math.ceil(keepMs / segmentMs)

/** @param {string} folder */
function readFolder (folder) {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

module.exports = { SegmentFiles, SPARE_SEGMENTS }

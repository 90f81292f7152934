'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { randomUUID } = require('node:crypto')
const { makeFolder } = require('../make-folder')

/** Upper bound of retained files, for an investigation; older ones are removed. */
const MAX_ENTRIES = 20
const MAX_BYTES = 16 * 2 ** 20
/** Upper bound of names listed in the log. */
const MAX_REPORTED = 10

/**
 * The folder `unreadable` in the data folder: files that could not be restored are moved to it. So
 * the next start does not find these files again, and no data is lost unnoticed.
 */
class Quarantine {
  #folder
  /** @type {{ file: string, reason: string }[]} */
  #reported = []
  #count = 0

  /** @param {string} dataFolder */
  constructor (dataFolder) {
    this.#folder = path.join(dataFolder, 'unreadable')
  }

  /**
   * Moves a file, link or folder to the quarantine, or removes it if this fails. It never throws.
   * @param {string} file
   * @param {string} reason
   */
  add (file, reason) {
    this.#count++
    const name = path.basename(file)
    if (this.#reported.length < MAX_REPORTED) this.#reported.push({ file: name, reason })
    try {
      this.#make()
      fs.renameSync(file, path.join(this.#folder, `${name}.${randomUUID().slice(0, 8)}`))
      this.#bound()
    } catch {
      this.#remove(file)
    }
  }

  /** @param {string} file */
  #remove (file) {
    try {
      fs.rmSync(file, { recursive: true, force: true })
    } catch {} // On a failing disk the file stays, and is skipped again at the next start.
  }

  /**
   * Files moved since the last call, for one line of the log.
   * @returns {{ count: number, files: { file: string, reason: string }[] } | undefined}
   */
  report () {
    if (this.#count === 0) return undefined
    const report = { count: this.#count, files: this.#reported }
    this.#count = 0
    this.#reported = []
    return report
  }

  /**
   * Creates the folder. It first removes a link in its place, which would redirect moves and
   * removals to another folder.
   */
  #make () {
    if (fs.lstatSync(this.#folder, { throwIfNoEntry: false })?.isDirectory() === false) {
      fs.rmSync(this.#folder)
    }
    makeFolder(this.#folder)
  }

  #bound () {
    const entries = fs.readdirSync(this.#folder).map(name => {
      const file = path.join(this.#folder, name)
      return { file, bytes: bytesOf(file), movedMs: fs.lstatSync(file).ctimeMs }
    }).sort((a, b) => b.movedMs - a.movedMs)
    let bytes = 0
    entries.forEach((entry, i) => {
      bytes += entry.bytes
      if (i < MAX_ENTRIES && bytes <= MAX_BYTES) return
      fs.rmSync(entry.file, { recursive: true, force: true })
    })
  }
}

/**
 * @param {string} file
 * @returns {number} size of a file; for a folder, the sum of its direct files
 */
function bytesOf (file) {
  const stats = fs.lstatSync(file)
  if (!stats.isDirectory()) return stats.size
  return fs.readdirSync(file).slice(0, 1000)
    .reduce((sum, name) => sum + fs.lstatSync(path.join(file, name)).size, 0)
}

module.exports = { Quarantine, MAX_ENTRIES, MAX_BYTES }

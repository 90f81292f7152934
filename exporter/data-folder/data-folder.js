'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { ConfigError } = require('../config-error')
const { makeFolder } = require('../make-folder')
const { FolderLock, LockedError } = require('./folder-lock')
const { Quarantine } = require('./quarantine')

/**
 * Error codes of a full disk. A full disk is no reason to refuse the start: the disk may have room
 * later, and the saved history on it can be restored.
 */
const FULL = ['ENOSPC', 'EDQUOT']

/**
 * The folder of --data-dir. It is checked at start, locked against a second exporter, and has a
 * quarantine for unreadable files.
 */
class DataFolder {
  #lock
  /**
   * Reason why there is no lock, if the file system does not support locks.
   * @type {Error | undefined}
   */
  unlocked

  /** @param {string} folder absolute path; see open */
  constructor (folder) {
    this.path = folder
    this.quarantine = new Quarantine(folder)
    this.#lock = new FolderLock(folder)
  }

  /**
   * @param {string} folder absolute
   * @returns {Promise<DataFolder>}
   * @throws {ConfigError} if the folder cannot be used, or if another exporter uses it
   */
  static async open (folder) {
    assertUsable(folder)
    const opened = new DataFolder(folder)
    try {
      await opened.hold()
    } catch (error) {
      throw new ConfigError(`--data-dir: ${/** @type {Error} */ (error).message}`)
    }
    return opened
  }

  /**
   * Acquires the lock, and again before each save, because the lock is lost if somebody removes the
   * folder.
   * @throws {LockedError} if another exporter uses the folder now
   */
  async hold () {
    try {
      await this.#lock.hold()
      this.unlocked = undefined
    } catch (error) {
      if (error instanceof LockedError) {
        throw new LockedError(`another exporter, ${error.message}, uses ${this.path}; ` +
          'give each exporter its own folder')
      }
      this.unlocked = /** @type {Error} */ (error)
    }
  }

  /** Releases the lock. */
  close () {
    this.#lock.release()
  }
}

/**
 * @param {string} folder
 * @throws {ConfigError}
 */
function assertUsable (folder) {
  try {
    makeFolder(folder)
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    const why = code === 'EEXIST'
      ? `${folder} is not a folder`
      : `cannot make the folder ${folder}: ${message}`
    throw new ConfigError(`--data-dir: ${why}`)
  }
  const probe = path.join(folder, 'probe')
  try {
    fs.rmSync(probe, { recursive: true, force: true })
    fs.closeSync(fs.openSync(probe, 'wx', 0o600))
    fs.rmSync(probe)
  } catch (error) {
    const { code = '', message } = /** @type {NodeJS.ErrnoException} */ (error)
    if (FULL.includes(code)) return
    throw new ConfigError(`--data-dir: cannot write to ${folder}: ${message}`)
  }
}

module.exports = { DataFolder }

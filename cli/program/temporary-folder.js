'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { UsageError } = require('./usage-error')

/**
 * Creates a folder for this user only.
 * @param {string} prefix prefix of its name
 * @param {string} [parent] default: the system's temporary folder
 * @returns {string} absolute path
 * @throws {UsageError} if the parent is not writable, as in a container with a read-only root
 */
function makeTemporaryFolder (prefix, parent = os.tmpdir()) {
  try {
    return fs.mkdtempSync(path.join(parent, prefix))
  } catch (error) {
    throw new UsageError(
      `cannot create a folder in ${parent}: ${/** @type {Error} */ (error).message}. Set TMPDIR to ` +
        'a writable folder, such as TMPDIR=/run/memwatch'
    )
  }
}

module.exports = { makeTemporaryFolder }

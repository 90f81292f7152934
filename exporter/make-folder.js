'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * A folder and those above it, for this user only. Not by mkdir's own `recursive`: where the system
 * says that there is no such folder though the one above it is there, as below /proc, Node tries
 * for ever.
 * @param {string} folder absolute
 * @throws {Error} of the file system
 */
function makeFolder (folder) {
  try {
    fs.mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (code === 'EEXIST' && fs.statSync(folder).isDirectory()) return
    if (code !== 'ENOENT' || fs.existsSync(path.dirname(folder))) throw error
    makeFolder(path.dirname(folder))
    fs.mkdirSync(folder, { mode: 0o700 })
  }
}

module.exports = { makeFolder }

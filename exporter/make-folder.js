'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * Creates a folder and its parents, accessible to this user only. The option `recursive` of mkdir
 * loops forever in Node.js if the system reports a missing folder although its parent exists, as it
 * does below /proc.
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

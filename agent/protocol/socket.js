'use strict'

const os = require('node:os')
const path = require('node:path')
const { lstatSync } = require('../primordials')

/**
 * Where an agent looks for its exporter, and an exporter listens, when nothing is said: a folder of
 * this user's own.
 * @returns {string} absolute path
 */
function defaultSocketPath () {
  const uid = process.getuid ? process.getuid() : os.userInfo().username
  return path.join(os.tmpdir(), `memwatch-${uid}`, 'exporter.sock')
}

/**
 * @param {import('node:fs').Stats} stats whether this user's, or root's; Windows pipes are no
 *   files, and have none
 */
const isOwn = ({ uid }) => process.getuid === undefined || uid === process.getuid() || uid === 0

/**
 * Whether nobody but this user, and root, can put anything there.
 * @param {string} folder
 * @returns {boolean} false for a symbolic link, too
 * @throws {Error} what the file system says, as where there is none
 */
function isOwnFolder (folder) {
  const stats = lstatSync(folder)
  return stats.isDirectory() && isOwn(stats) && (stats.mode & 0o022) === 0
}

/**
 * Whether nobody but this user, and root, can have put that socket there.
 * @param {string} socketPath
 * @throws {Error} what the file system says
 */
function isOwnSocket (socketPath) {
  const stats = lstatSync(socketPath)
  return stats.isSocket() && isOwn(stats) && isOwnFolder(path.dirname(socketPath))
}

module.exports = { defaultSocketPath, isOwnFolder, isOwnSocket }

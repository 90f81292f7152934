'use strict'

const os = require('node:os')
const path = require('node:path')
const { lstatSync } = require('../primordials')

/**
 * Default address of agents and exporter: a socket in a folder of the user's own.
 * @param {{ user?: number | string, folder?: string }} [of] another process: user and temporary
 *   folder
 * @returns {string} absolute path
 */
function defaultSocketPath ({
  user = process.getuid?.() ?? os.userInfo().username, folder = os.tmpdir()
} = {}) {
  return path.join(folder, `memwatch-${user}`, 'exporter.sock')
}

/**
 * User of this process. It is undefined on Windows: files have no user there, and pipes are no
 * files.
 */
const ownUser = () => process.getuid?.()

/**
 * @param {import('node:fs').Stats} stats
 * @param {number | undefined} user
 */
const isOwnedBy = ({ uid }, user) => user === undefined || uid === user || uid === 0

/**
 * A safe folder is writable by one user and root only.
 * @param {string} folder
 * @param {number | undefined} [user] default: user of this process
 * @returns {boolean} false for symbolic links, too
 * @throws {Error} error of the file system
 */
function isOwnFolder (folder, user = ownUser()) {
  const stats = lstatSync(folder)
  return stats.isDirectory() && isOwnedBy(stats, user) && (stats.mode & 0o022) === 0
}

/**
 * Only one user and root can have created a safe socket.
 * @param {string} socketPath
 * @param {number | undefined} [user] default: user of this process
 * @throws {Error} error of the file system
 */
function isOwnSocket (socketPath, user = ownUser()) {
  const stats = lstatSync(socketPath)
  return stats.isSocket() && isOwnedBy(stats, user) && isOwnFolder(path.dirname(socketPath), user)
}

module.exports = { defaultSocketPath, isOwnFolder, isOwnSocket }

'use strict'

const os = require('node:os')
const path = require('node:path')
const { lstatSync } = require('../primordials')

/**
 * Where an agent looks for its exporter, and an exporter listens, when nothing is said: a folder of
 * the user's own.
 * @param {{ user?: number | string, folder?: string }} [of] another process; folder: its temporary
 *   one
 * @returns {string} absolute path
 */
function defaultSocketPath ({
  user = process.getuid?.() ?? os.userInfo().username, folder = os.tmpdir()
} = {}) {
  return path.join(folder, `memwatch-${user}`, 'exporter.sock')
}

/** Undefined on Windows, where files have no user, and pipes are no files. */
const ownUser = () => process.getuid?.()

/**
 * @param {import('node:fs').Stats} stats
 * @param {number | undefined} user whether it is this user's, or root's
 */
const isOf = ({ uid }, user) => user === undefined || uid === user || uid === 0

/**
 * A folder is safe where nobody but a user, and root, can put anything there.
 * @param {string} folder
 * @param {number | undefined} [user] this process's own without it
 * @returns {boolean} false for a symbolic link, too
 * @throws {Error} what the file system says, as where there is none
 */
function isOwnFolder (folder, user = ownUser()) {
  const stats = lstatSync(folder)
  return stats.isDirectory() && isOf(stats, user) && (stats.mode & 0o022) === 0
}

/**
 * A socket is safe where nobody but a user, and root, can have put it there.
 * @param {string} socketPath
 * @param {number | undefined} [user] this process's own without it
 * @throws {Error} what the file system says
 */
function isOwnSocket (socketPath, user = ownUser()) {
  const stats = lstatSync(socketPath)
  return stats.isSocket() && isOf(stats, user) && isOwnFolder(path.dirname(socketPath), user)
}

module.exports = { defaultSocketPath, isOwnFolder, isOwnSocket }

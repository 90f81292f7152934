'use strict'

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { isOwnFolder, isOwnSocket } = require('@memwatch/agent/protocol/socket')
const { ok, problem, unknown } = require('./check')

/** Timeout of a peer's answer. */
const TIMEOUT_MS = 2000

/** @typedef {import('./check').Check} Check */

/** @returns {Check} */
function checkNode () {
  const floor = require('../package.json').engines.node.replace(/^>=/, '')
  const [leastMajor, leastMinor] = floor.split('.').map(Number)
  const [major, minor] = process.versions.node.split('.').map(Number)
  const text = `Node.js ${process.versions.node} runs this command line; it needs ${floor} or ` +
    'later.'
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
    ? ok('node', text)
    : problem('node', text, `Install Node.js ${floor} or later. The agent runs on 18 and later.`)
}

/** Solution for an app that may not connect to the socket. */
const SAME_USER =
  'Run app and exporter as the same user, or give the app the group of the socket’s folder.'

/**
 * Checks the socket to which an agent connects.
 * @param {import('@memwatch/exporter/ingest/address').Address} address
 * @param {object} of
 * @param {number} [of.user] user id of the process with the agent
 * @param {readonly number[]} [of.groups] group ids of this user
 * @param {boolean} [of.isDefault] true for the default address
 * @param {boolean} [of.hasToken] true if agent and exporter share a token
 * @param {string} [of.root] root folder of the process with the agent, as a path that this process
 *   can open
 * @returns {Promise<Check>}
 */
async function checkSocket (
  address,
  { user, groups = [], isDefault = false, hasToken = false, root = '' } = {}
) {
  const shown = 'path' in address ? address.path : `tcp://${address.host}:${address.port}`
  const to = 'path' in address ? { path: path.join(root, address.path) } : address
  const code = await tryToConnect(to)
  if (code !== undefined) {
    if (code === 'EACCES' && user === process.getuid?.()) {
      return problem(
        'socket',
        `The app's user ${user} may not connect to the agent socket ${shown}.`,
        SAME_USER
      )
    }
    return code === 'EACCES'
      ? unknown('socket', `This user may not connect to the agent socket ${shown}.`)
      : problem('socket', `The agent socket ${shown} does not answer: ${WHY[code] ?? code}.`,
        'Start memwatch exporter with this --socket, and give app and exporter the same ' +
        'MEMWATCH_SOCKET.')
  }
  if (!('path' in to)) return ok('socket', `The agent socket ${shown} answers.`)
  try {
    return checkOwner(to.path, shown, { user, groups, isDefault, hasToken })
  } catch (error) {
    return unknown('socket', `The owner of ${shown} cannot be read: ${codeOf(error)}.`)
  }
}

/** @type {Record<string, string>} */
const WHY = {
  ENOENT: 'there is no such file',
  ENOTSOCK: 'the file is not a socket',
  ECONNREFUSED: 'no exporter listens; an ended exporter left the file',
  timeout: `no answer within ${TIMEOUT_MS / 1000} s`
}

/**
 * @param {string} file
 * @param {string} shown
 * @param {{ user?: number, groups: readonly number[], isDefault: boolean, hasToken: boolean }} of
 * @returns {Check}
 * @throws {Error} of the file system
 */
function checkOwner (file, shown, { user, groups, isDefault, hasToken }) {
  const stats = fs.statSync(file)
  const { uid, gid, mode } = stats
  const owner = `user ${uid}, group ${gid}, mode ${(mode & 0o777).toString(8)}`
  const reaches = allows(stats, 0o2, user, groups) &&
    allows(fs.statSync(path.dirname(file)), 0o1, user, groups)
  if (!reaches) {
    return problem(
      'socket',
      `The app's user ${user} may not connect to the agent socket ${shown}: it belongs to ` +
        `${owner}.`,
      SAME_USER
    )
  }
  if (isDefault && !isOwnFolder(path.dirname(file), user)) {
    return problem(
      'socket',
      `The folder of ${shown} belongs to another user, or others may write to it: the agent does ` +
        'not use it.',
      'Remove the folder and start the exporter again, or set MEMWATCH_SOCKET.'
    )
  }
  if (!hasToken && !isOwnSocket(file, user)) {
    return problem(
      'socket',
      `The agent socket ${shown} answers and belongs to ${owner}. The agent refuses captures and ` +
        'trims: the socket belongs to another user than the app, or others may write to its ' +
        'folder.',
      'Forbid others to write to the folder (chmod go-w), or share a token: MEMWATCH_TOKEN_FILE.'
    )
  }
  return ok('socket', `The agent socket ${shown} answers. It belongs to ${owner}.`)
}

/**
 * @param {fs.Stats} stats
 * @param {number} right 2: write; 1: enter
 * @param {number | undefined} user user id; undefined for this process, which has already opened
 *   the path
 * @param {readonly number[]} groups
 */
function allows ({ uid, gid, mode }, right, user, groups) {
  if (user === undefined || user === 0) return true
  const shift = user === uid ? 6 : groups.includes(gid) ? 3 : 0
  return (mode & (right << shift)) !== 0
}

/**
 * @param {import('node:net').NetConnectOpts} to
 * @returns {Promise<string | undefined>} error code; undefined if the connection succeeds
 */
const tryToConnect = to => new Promise(resolve => {
  const socket = net.connect(to)
  const end = (/** @type {string | undefined} */ code) => {
    socket.destroy()
    resolve(code)
  }
  socket.setTimeout(TIMEOUT_MS, () => end('timeout'))
  socket.once('connect', () => end(undefined))
  socket.once('error', error => end(codeOf(error)))
})

/** @param {unknown} error */
const codeOf = error => String(/** @type {NodeJS.ErrnoException} */ (error).code ?? error)

module.exports = { TIMEOUT_MS, checkNode, checkSocket }

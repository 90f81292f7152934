'use strict'

const fs = require('node:fs')
const net = require('node:net')
const { once } = require('node:events')
const { options } = require('@memwatch/agent/protocol/config')
const { NotFound } = require('./refusal')

/** @typedef {import('./subject').Subject} Subject */

/**
 * Checks the right of a process to write to the socket of an exporter. It does not connect.
 * @param {Subject} subject
 * @param {string} text valid address, as the process sees it
 * @throws {import('./refusal').Refusal}
 */
function checkSocketAccess (subject, text) {
  const address = options.socket.read(text)
  if (!('path' in address)) return
  let stats
  try {
    stats = fs.statSync(subject.outside(address.path))
  } catch {
    return subject.refuse(
      `does not see the exporter's socket ${text}: mount its folder into the container, or set ` +
        `${options.socket.env} of the process to its path there`
    )
  }
  const { uid, gid, mode } = stats
  const isOpen = subject.user === 0 || uid === subject.user || (mode & 0o002) !== 0 ||
    ((mode & 0o020) !== 0 && subject.groups.includes(gid))
  if (!isOpen) {
    subject.refuse(
      `runs as user ${subject.user}, and may not write to ${text} of user ${uid}: run an ` +
        'exporter as the user or group of the process, and give its address with --socket'
    )
  }
}

/**
 * Checks that an exporter listens, and that the process may write to its socket. Otherwise an agent
 * would wait in the process in vain.
 * @param {Subject} subject
 * @param {string} text valid address, as the process sees it
 * @throws {import('./refusal').Refusal}
 * @throws {NotFound} if no exporter answers
 */
async function checkExporter (subject, text) {
  const address = options.socket.read(text)
  const isFile = 'path' in address
  // A port in another network namespace cannot be reached from this process.
  if (!isFile && !subject.sharesNamespace('net')) return
  const socket = net.connect(isFile ? { path: subject.outside(address.path) } : address)
  try {
    await once(socket, 'connect')
  } catch (error) {
    throw new NotFound(
      `no exporter answers at ${text}: ${/** @type {Error} */ (error).message}; start one with ` +
        'memwatch exporter, or give its address with --socket'
    )
  } finally {
    socket.destroy()
  }
  checkSocketAccess(subject, text)
}

module.exports = { checkExporter, checkSocketAccess }

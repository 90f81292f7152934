'use strict'

const { kinds } = require('../captures/kinds')

/** Record of a capture. It is sent last, so a capture with a record is complete. */
const RECORD = 'capture.json'
const MOST_NAME_LENGTH = 100
const ID = /^[0-9a-f-]{36}$/
const PART = /^[a-z]{1,32}$/

/**
 * Keys of a capture: TARGET/DATE/TIME-KIND-ID. The name of the target comes from the app:
 * characters other than letters, digits, "." and "-" become "_", as do names that consist of dots
 * only.
 * @param {import('../captures/captures').Capture} capture
 * @returns {string} key prefix of its parts
 * @throws {Error} if the id is invalid
 */
function folderKey ({ id, kind, target, requestedUnixMs }) {
  if (!ID.test(id) || !Object.hasOwn(kinds, kind)) throw new Error(`no capture: ${id}`)
  return `${placeKey(target, requestedUnixMs)}-${kind}-${id}`
}

/**
 * @param {string} target name of the app
 * @param {number} atUnixMs
 * @returns {string} TARGET/DATE/TIME
 */
function placeKey (target, atUnixMs) {
  const name = target.slice(0, MOST_NAME_LENGTH).replace(/[^\w.-]/g, '_').replace(/^\.+/, '_')
  const [date, time] = new Date(atUnixMs).toISOString().split('T')
  return `${name || '_'}/${date}/${time.slice(0, 8).replaceAll(':', '')}`
}

/**
 * Key of a file of `memwatch triage`.
 * @param {{ target: string, pid: number, atUnixMs: number }} of
 */
const triageKey = ({ target, pid, atUnixMs }) =>
  `${placeKey(target, atUnixMs)}-triage-${pid}.memwatch.tgz`

/**
 * @param {import('../captures/captures').Capture} capture
 * @param {string} part
 * @returns {string}
 * @throws {Error} if the part's name is invalid
 */
function partKey (capture, part) {
  if (!PART.test(part)) throw new Error('no part of a capture')
  return `${folderKey(capture)}/${part}.${kinds[capture.kind].extension}`
}

/** @param {import('../captures/captures').Capture} capture */
const recordKey = capture => `${folderKey(capture)}/${RECORD}`

module.exports = { partKey, recordKey, triageKey }

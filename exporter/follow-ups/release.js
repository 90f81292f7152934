'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')
const { PARENT_VARIABLES } = require('@memwatch/engine/verdicts/arrival')
const { readRegularFile } = require('../data-folder/regular-file')
const { ancestorsOf, scriptWords, viewProcess } = require('../process/process-view')
const { Witness } = require('../process/witness')

/** Size limit of a script that is read to distinguish releases; bundles of servers are smaller. */
const MAX_SCRIPT_BYTES = 4 * 2 ** 20
const MAX_PACKAGE_BYTES = 2 ** 18
/**
 * Upper bound of ancestors whose environment is read, such as a supervisor, its shell and an init.
 */
const MOST_PARENTS = 4
/**
 * Name of a pod of a Deployment: the name of its ReplicaSet, which changes with each release, and a
 * suffix.
 */
const REPLICA_SET = /^(.+-[bcdfghjklmnpqrstvwxz2456789]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}$/

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/**
 * Identifies the code that a process runs: by its ReplicaSet, and by a digest of its script, the
 * nearest package.json, and its command line without the options of Node.js.
 * @param {Hello} hello
 * @returns {string | null} name of the ReplicaSet and digest; null if neither is visible
 */
function readRelease (hello) {
  const parts = [REPLICA_SET.exec(hello.pod?.name ?? '')?.[1], digestOf(hello)]
    .filter(part => part !== undefined)
  return parts.length > 0 ? parts.join(' ') : null
}

/**
 * @param {Hello} hello
 * @returns {string | undefined}
 */
function digestOf (hello) {
  const view = seeProcess(hello)
  if (!view) return undefined
  const words = scriptWords(view)
  if (words.length === 0) return undefined
  const digest = createHash('sha256').update(JSON.stringify(words))
  try {
    const root = `/proc/${hello.pid}/root`
    const script = path.resolve(fs.readlinkSync(`/proc/${hello.pid}/cwd`), words[0])
    digest.update(readRegularFile(root + script, { maxBytes: MAX_SCRIPT_BYTES }))
    digest.update(nearestPackage(root, path.dirname(script)))
  // The file is not readable, gone, or not a file: the digest uses the command line alone.
  } catch {}
  return digest.digest('hex').slice(0, 16)
}

/**
 * @param {string} root
 * @param {string} folder
 * @returns {Buffer | string} content of package.json in the folder or in the nearest folder above;
 *   empty without one
 */
function nearestPackage (root, folder) {
  for (; ; folder = path.dirname(folder)) {
    try {
      const file = path.join(root, folder, 'package.json')
      return readRegularFile(file, { maxBytes: MAX_PACKAGE_BYTES })
    } catch {} // The file is absent or unreadable.
    if (folder === path.dirname(folder)) return ''
  }
}

/**
 * Environments of a process's ancestors, reduced to the variables that carry flags and libraries.
 * @param {Hello} hello
 * @returns {Record<string, string>[]} environments, the nearest ancestor first; empty if they are
 *   not visible
 */
function readParents (hello) {
  const view = seeProcess(hello)
  if (!view) return []
  return ancestorsOf(view).slice(0, MOST_PARENTS).map(({ env }) => Object.fromEntries(
    PARENT_VARIABLES.flatMap(name => env?.[name] === undefined ? [] : [[name, env[name]]])))
}

/** @param {Hello} hello */
const seeProcess = hello =>
  process.platform === 'linux' && Witness.of(hello) ? viewProcess(hello.pid) : undefined

module.exports = { readRelease, readParents }

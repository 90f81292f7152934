'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')
const { PARENT_VARIABLES } = require('@memwatch/engine/verdicts/arrival')
const { readRegularFile } = require('../data-folder/regular-file')
const { ancestorsOf, scriptWords, viewProcess } = require('../process/process-view')
const { Witness } = require('../process/witness')

/** Largest script that is read to tell releases apart; bundles of servers stay below. */
const MAX_SCRIPT_BYTES = 4 * 2 ** 20
const MAX_PACKAGE_BYTES = 2 ** 18
/** Ancestors whose environment is read: a supervisor, its shell and an init. */
const MOST_PARENTS = 4
/** Name of a pod of a Deployment: its ReplicaSet, which changes with each release, and a suffix. */
const REPLICA_SET = /^(.+-[bcdfghjklmnpqrstvwxz2456789]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}$/

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/**
 * Name of the code that a process runs: a digest of its command line after the options of Node.js,
 * of its script and of the nearest package.json, and its ReplicaSet. Only the digest is retained.
 * @param {Hello} hello
 * @returns {string | null} null if neither is visible
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
  } catch {} // another user's, gone, or no file: the command line remains
  return digest.digest('hex').slice(0, 16)
}

/**
 * @param {string} root
 * @param {string} folder
 * @returns {Buffer | string} its package.json, or that of the nearest folder above
 */
function nearestPackage (root, folder) {
  for (; ; folder = path.dirname(folder)) {
    try {
      const file = path.join(root, folder, 'package.json')
      return readRegularFile(file, { maxBytes: MAX_PACKAGE_BYTES })
    } catch {} // absent, or unreadable
    if (folder === path.dirname(folder)) return ''
  }
}

/**
 * Environments of the ancestors of a process, as far as flags and libraries come by them.
 * @param {Hello} hello
 * @returns {Record<string, string>[]} the nearest first; empty if they are invisible
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

'use strict'

const fs = require('node:fs')
const { shellWord } = require('@memwatch/engine/text/shell')

/** Exit statuses of a shell for a command that is not executable, and for a missing one. */
const STATUS = Object.freeze({ notExecutable: 126, notFound: 127 })
const SCRIPT = /\.[cm]?[jt]s$/

/**
 * Explains a command that cannot be started.
 * @param {string[]} words words of the command
 * @param {NodeJS.ErrnoException} error error of spawn
 * @returns {{ text: string, status: number }} text: a line for stderr; status: exit status
 */
function explainSpawnFailure (words, { code, message }) {
  const [file] = words
  const reason = code === 'ENOENT'
    ? 'no such command'
    : code === 'EACCES' ? explainAccess(file) : message
  const hint = SCRIPT.test(file) && statOf(file)?.isFile()
    ? `; run it with Node.js: node ${words.map(shellWord).join(' ')}`
    : ''
  return {
    text: `memwatch: cannot run ${file}: ${reason}${hint}`,
    status: code === 'EACCES' ? STATUS.notExecutable : STATUS.notFound
  }
}

/** @param {string} file that the system does not execute */
function explainAccess (file) {
  const stat = statOf(file)
  if (stat === undefined) return 'not allowed for this user'
  return stat.isDirectory() ? 'it is a folder' : 'the file is not executable'
}

/**
 * @param {string} file
 * @returns {fs.Stats | undefined} stat; undefined if the file is absent, or in a folder without
 *   access
 */
function statOf (file) {
  try {
    return fs.statSync(file)
  } catch {
    return undefined
  }
}

module.exports = { explainSpawnFailure }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { NotFound } = require('@memwatch/exporter/attachment/refusal')
const { Subject } = require('@memwatch/exporter/attachment/subject')
const {
  isStarter, scriptWords, viewNodeProcesses
} = require('@memwatch/exporter/process/process-view')

/** Size limit of a package.json, which has some kilobytes: the app's files are untrusted. */
const MAX_PACKAGE_BYTES = 1_048_576

/**
 * @param {string} text process id, or name of the app's package or script
 * @returns {Subject}
 * @throws {NotFound} if no process or several have that name
 */
function findSubject (text) {
  if (/^\d+$/.test(text)) return new Subject(Number(text))
  const found = viewNodeProcesses().filter(view => !isStarter(view) && namesOf(view).includes(text))
  if (found.length === 1) return new Subject(found[0].pid)
  throw new NotFound(
    found.length === 0
      ? `no visible Node.js process is named ${text}; give its process id`
      : `${found.length} processes are named ${text}; give one of these process ids: ` +
        found.map(({ pid }) => pid).join(', ')
  )
}

/**
 * @param {import('@memwatch/exporter/process/process-view').ProcessView} view
 * @returns {string[]} names that the agent may report: MEMWATCH_NAME, the nearest package, the
 *   script
 */
function namesOf (view) {
  const [script] = scriptWords(view)
  const names = view.env?.MEMWATCH_NAME ? [view.env.MEMWATCH_NAME] : []
  if (script === undefined) return names
  return [...names, ...packageOf(view.pid, script), path.basename(script).replace(/\.[cm]?[jt]s$/, '')]
}

/**
 * @param {number} pid
 * @param {string} script script in the form of the command line
 * @returns {string[]} name in the nearest package.json above, if any
 */
function packageOf (pid, script) {
  try {
    const root = `/proc/${pid}/root`
    const cwd = fs.readlinkSync(`/proc/${pid}/cwd`)
    for (let folder = path.dirname(path.resolve(cwd, script)); ; folder = path.dirname(folder)) {
      const name = nameIn(path.join(root, folder, 'package.json'))
      if (name !== undefined) return [name]
      if (folder === path.dirname(folder)) return []
    }
  } catch {
    return [] // The process is gone, or belongs to another user.
  }
}

/** @param {string} file */
function nameIn (file) {
  try {
    const stats = fs.statSync(file)
    if (!stats.isFile() || stats.size > MAX_PACKAGE_BYTES) return undefined
    const { name } = JSON.parse(fs.readFileSync(file, 'utf8'))
    return typeof name === 'string' ? name : undefined
  } catch {
    return undefined // The file is absent, or not JSON.
  }
}

module.exports = { findSubject }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { MALLOC_ENV, loadedAllocator } = require('@memwatch/agent/protocol/allocators')
const { plainFlags, splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { startsApp } = require('@memwatch/agent/protocol/starters')
const { preloadOptions } = require('@memwatch/engine/fixes/node-flag')

/**
 * @param {string} file path of a binary
 * @returns {boolean} true if the file has a name of Node.js, including the names in distributions
 */
const isNodeFile = file => /^node(js)?(-?\d+)?$/.test(path.basename(file))
/** Options of Node.js whose value may be the next word in the command line. */
const WITH_VALUE = new Set([
  '-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions',
  '-e', '--eval', '-p', '--print', '-pe', '--title', '--env-file', '--inspect-port'
])

/**
 * A process as /proc shows it to another process. Unreadable fields are null.
 * @typedef {object} ProcessView
 * @property {number} pid
 * @property {number} parentPid pid of the parent; 0 if it is not visible
 * @property {number | undefined} user effective user id
 * @property {number[]} groups effective group id and supplementary group ids
 * @property {boolean} isNode
 * @property {string[] | null} argv words of the command line; null also if the process replaced it
 *   by a title
 * @property {Record<string, string> | null} env environment at its start
 * @property {string | null} maps
 * @property {string | null} cgroup
 */

/** @typedef {import('@memwatch/engine/verdicts/applied').Settings} Settings */

/**
 * @param {number} pid
 * @returns {ProcessView | undefined} undefined if the process does not exist or is not visible
 */
function viewProcess (pid) {
  const status = tryRead(pid, 'status')
  if (status === null || /^State:\s+[ZX]/m.test(status)) return undefined
  const words = commandLineOf(pid)
  const isNode = isNodeFile(programOf(pid, words))
  return {
    pid,
    parentPid: numbersOf(status, 'PPid')[0] ?? 0,
    user: numbersOf(status, 'Uid')[1],
    groups: [...numbersOf(status, 'Gid').slice(1, 2), ...numbersOf(status, 'Groups')],
    isNode,
    // A process title replaces the command line by one word.
    argv: isNode && words && !isNodeFile(words[0] ?? '') ? null : words,
    env: environmentOf(tryRead(pid, 'environ')),
    maps: tryRead(pid, 'maps') || null,
    cgroup: tryRead(pid, 'cgroup')
  }
}

/**
 * @param {string} status text of /proc/PID/status
 * @param {string} name name of a line with numbers
 */
const numbersOf = (status, name) =>
  (new RegExp(`^${name}:(.*)`, 'm').exec(status)?.[1] ?? '').split(/\s+/).filter(Boolean).map(Number)

/**
 * @param {number} pid
 * @returns {string | undefined}
 */
function executableOf (pid) {
  try {
    return fs.readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '')
  } catch {
    return undefined // The process belongs to another user.
  }
}

/**
 * @param {number} pid
 * @param {string[] | null} [words] words of its command line
 * @returns {string} path of its binary; empty for a process that is gone or has no binary
 */
const programOf = (pid, words = commandLineOf(pid)) => executableOf(pid) ?? words?.[0] ?? ''

/** @param {number} pid */
const commandLineOf = pid => tryRead(pid, 'cmdline')?.split('\0').slice(0, -1) ?? null

/** @param {string | null} text of /proc/PID/environ */
function environmentOf (text) {
  if (text === null) return null
  return Object.fromEntries(text.split('\0').filter(Boolean).map(entry => {
    const equals = entry.indexOf('=')
    return [entry.slice(0, equals), entry.slice(equals + 1)]
  }))
}

/**
 * @param {number} pid
 * @param {string} name
 */
function tryRead (pid, name) {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return null // The process is gone or belongs to another user, or this is not Linux.
  }
}

/**
 * Finds Node.js processes. Memory maps and environments are not read, because a machine may have a
 * thousand processes.
 * @returns {number[]} ids of all visible Node.js processes except this one
 */
function findNodeProcesses () {
  let names
  try {
    names = fs.readdirSync('/proc')
  } catch {
    return [] // This is not Linux.
  }
  return names.filter(name => /^\d+$/.test(name)).map(Number)
    .filter(pid => pid !== process.pid && isNodeFile(programOf(pid)))
}

/** @returns {ProcessView[]} all visible Node.js processes except this one */
const viewNodeProcesses = () => findNodeProcesses().flatMap(pid => viewProcess(pid) ?? [])

/**
 * @param {ProcessView} view
 * @returns {ProcessView[]} ancestors of the process, the parent first
 */
function ancestorsOf ({ pid, parentPid }) {
  const ancestors = []
  const seen = new Set([pid])
  for (let next = parentPid; next > 0 && !seen.has(next);) {
    seen.add(next)
    const view = viewProcess(next)
    if (!view) break
    ancestors.push(view)
    next = view.parentPid
  }
  return ancestors
}

/**
 * @param {ProcessView} view
 * @returns {Settings | null} settings; null if the environment or command line is unreadable
 */
function settingsOf ({ argv, env, maps }) {
  if (!argv || !env) return null
  return {
    nodeOptions: plainFlags(splitNodeOptions(env.NODE_OPTIONS ?? '')),
    execArgv: plainFlags(optionsOf(argv)),
    mallocEnv: Object.fromEntries(
      MALLOC_ENV.filter(name => env[name]).map(name => [name, env[name]])
    ),
    ...loadedAllocator(maps ?? undefined)
  }
}

/**
 * @param {readonly string[]} argv
 * @returns {string[]} options of Node.js: the words before the script
 */
function optionsOf (argv) {
  const words = argv.slice(1)
  const end = words.findIndex((word, i) => {
    const isValue = i > 0 && WITH_VALUE.has(words[i - 1])
    return !isValue && (!word.startsWith('-') || word === '-' || word === '--')
  })
  return end < 0 ? words : words.slice(0, end)
}

/**
 * @param {ProcessView} view
 * @returns {string[]} script, as in the command line, and its arguments
 */
function scriptWords ({ argv }) {
  const words = argv?.slice(1 + optionsOf(argv).length) ?? []
  return words[0] === '--' ? words.slice(1) : words
}

/** @param {ProcessView} view */
const isStarter = view => startsApp(['', ...scriptWords(view)])

/**
 * @param {ProcessView} view
 * @returns {boolean} true for the command line or an exporter of memwatch, which are not apps
 */
const isMemwatch = view => /(^|\/)memwatch(\.js)?$/.test(scriptWords(view)[0] ?? '')

/** @param {Settings | null} settings */
const preloadsAgent = settings =>
  settings !== null && preloadOptions([...settings.nodeOptions, ...settings.execArgv]).length > 0

/**
 * Length limit of a word: a command line may contain any text, and file names on Linux have at most
 * 255 bytes.
 */
const MOST_WORD_LENGTH = 255

/**
 * Name of a process for people, without arguments, which may contain secrets.
 * @param {ProcessView} view
 * @returns {string} such as: process 7 (node server.js)
 */
function describeProcess (view) {
  const file = view.argv?.[0]
  if (!file) return `process ${view.pid}`
  const script = view.isNode ? scriptWords(view)[0] : undefined
  const words = [file, script ?? ''].map(word => path.basename(word).slice(0, MOST_WORD_LENGTH))
  return `process ${view.pid} (${words.join(' ').trim()})`
}

module.exports = {
  isNodeFile,
  viewProcess,
  findNodeProcesses,
  viewNodeProcesses,
  ancestorsOf,
  settingsOf,
  scriptWords,
  isMemwatch,
  isStarter,
  preloadsAgent,
  describeProcess
}

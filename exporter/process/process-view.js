'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { MALLOC_ENV, loadedAllocator } = require('@memwatch/agent/protocol/allocators')
const { plainFlags, splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { startsApp } = require('@memwatch/agent/protocol/starters')
const { preloadOptions } = require('@memwatch/engine/fixes/node-flag')

/**
 * @param {string} file path of a binary
 * @returns {boolean} true: it has a name of Node.js, including those in distributions
 */
const isNodeFile = file => /^node(js)?(-?\d+)?$/.test(path.basename(file))
/** Options of Node.js whose value may be the next word of the command line. */
const WITH_VALUE = new Set([
  '-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions',
  '-e', '--eval', '-p', '--print', '-pe', '--title', '--env-file', '--inspect-port'
])

/**
 * A process as /proc shows it to another process. Unreadable fields are null.
 * @typedef {object} ProcessView
 * @property {number} pid
 * @property {number} parentPid 0: none visible
 * @property {number | undefined} user effective user id
 * @property {number[]} groups effective one and supplementary ones
 * @property {boolean} isNode
 * @property {string[] | null} argv also null if the process replaced it by a title
 * @property {Record<string, string> | null} env environment at its start
 * @property {string | null} maps
 * @property {string | null} cgroup
 */

/** @typedef {import('@memwatch/engine/verdicts/applied').Settings} Settings */

/**
 * @param {number} pid
 * @returns {ProcessView | undefined} undefined if the process does not exist or is invisible
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
    // A title replaces the command line by one word.
    argv: isNode && words && !isNodeFile(words[0] ?? '') ? null : words,
    env: environmentOf(tryRead(pid, 'environ')),
    maps: tryRead(pid, 'maps') || null,
    cgroup: tryRead(pid, 'cgroup')
  }
}

/**
 * @param {string} status text of /proc/PID/status
 * @param {string} name of a line of numbers
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
    return undefined // another user's
  }
}

/**
 * @param {number} pid
 * @param {string[] | null} [words] of its command line
 * @returns {string} path of its binary; empty for one without, and one that is gone
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
    return null // gone, of another user, or not on Linux
  }
}

/**
 * Their memory maps and environments are not read: a machine may have a thousand processes.
 * @returns {number[]} ids of all visible Node.js processes except this one
 */
function findNodeProcesses () {
  let names
  try {
    names = fs.readdirSync('/proc')
  } catch {
    return [] // no Linux
  }
  return names.filter(name => /^\d+$/.test(name)).map(Number)
    .filter(pid => pid !== process.pid && isNodeFile(programOf(pid)))
}

/** @returns {ProcessView[]} all visible Node.js processes except this one */
const viewNodeProcesses = () => findNodeProcesses().flatMap(pid => viewProcess(pid) ?? [])

/**
 * @param {ProcessView} view
 * @returns {ProcessView[]} its parent, the parent of that …
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
 * @returns {Settings | null} null if its environment or command line is unreadable
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
 * @returns {string[]} the options of Node.js, which stand before the script
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
 * @returns {string[]} the script as on the command line, and its arguments
 */
function scriptWords ({ argv }) {
  const words = argv?.slice(1 + optionsOf(argv).length) ?? []
  return words[0] === '--' ? words.slice(1) : words
}

/** @param {ProcessView} view */
const isStarter = view => startsApp(['', ...scriptWords(view)])

/**
 * @param {ProcessView} view
 * @returns {boolean} true: the command line or an exporter of memwatch, which are no apps
 */
const isMemwatch = view => /(^|\/)memwatch(\.js)?$/.test(scriptWords(view)[0] ?? '')

/** @param {Settings | null} settings */
const preloadsAgent = settings =>
  settings !== null && preloadOptions([...settings.nodeOptions, ...settings.execArgv]).length > 0

/** A file name of Linux has at most 255 bytes, and a command line may hold anything. */
const MOST_WORD_LENGTH = 255

/**
 * Name of a process for people, without arguments, which may contain secrets.
 * @param {ProcessView} view
 * @returns {string} process 7 (node server.js)
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

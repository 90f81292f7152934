'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { MALLOC_ENV, loadedAllocator } = require('@memwatch/agent/protocol/allocators')
const { plainFlags, splitNodeOptions } = require('@memwatch/agent/protocol/node-options')

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
  const words = tryRead(pid, 'cmdline')?.split('\0').slice(0, -1) ?? null
  const file = executableOf(pid) ?? words?.[0] ?? ''
  const isNode = isNodeFile(file)
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

/** @returns {ProcessView[]} all visible Node.js processes except this one */
function viewNodeProcesses () {
  let names
  try {
    names = fs.readdirSync('/proc')
  } catch {
    return [] // no Linux
  }
  return names
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(name => viewProcess(Number(name)) ?? [])
    .filter(({ isNode }) => isNode)
}

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

module.exports = {
  isNodeFile, viewProcess, viewNodeProcesses, ancestorsOf, settingsOf, scriptWords
}

'use strict'

const { MALLOC_ENV } = require('@memwatch/agent/protocol/allocators')
const { readConfig } = require('@memwatch/agent/protocol/config')
const { plainFlags, splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { preloadOptions } = require('@memwatch/engine/fixes/node-flag')
const { flagSettings } = require('@memwatch/engine/v8/flags')
const { silenceCauses } = require('@memwatch/exporter/deaths/silence')
const {
  describeProcess, isStarter, preloadsAgent
} = require('@memwatch/exporter/process/process-view')
const { ok, problem, unknown, whyUnread } = require('./check')

/** @typedef {import('./check').Check} Check */
/** @typedef {import('./check').Subject} Subject */
/** @typedef {import('./check').Seen} Seen */

/** Variables that only one allocator reads. @type {Record<string, string>} */
const READ_BY = Object.freeze({
  MALLOC_CONF: 'jemalloc',
  MALLOC_ARENA_MAX: 'glibc',
  MALLOC_MMAP_THRESHOLD_: 'glibc',
  MALLOC_TRIM_THRESHOLD_: 'glibc',
  MALLOC_MMAP_MAX_: 'glibc',
  MALLOC_TOP_PAD_: 'glibc',
  MIMALLOC_PURGE_DELAY: 'mimalloc',
  TCMALLOC_RELEASE_RATE: 'tcmalloc'
})

/** @type {Record<string, string>} */
const SILENCE = silenceCauses

/**
 * Checks that the agent runs in a process and reports.
 * @param {Subject} subject
 * @param {{ answers: boolean }} exporter true if an exporter answers
 * @returns {Check}
 */
function checkAgent ({ pid, view, settings, ancestors, target }, { answers }) {
  if (target?.up) return ok('agent', `The agent reports process ${pid} as ${target.target}.`)
  if (target) {
    return problem(
      'agent',
      `The agent of process ${pid} (${target.target}) is silent` +
        `${SILENCE[target.silence] ? `: ${SILENCE[target.silence]}` : '.'}`,
      'memwatch top and the page of the exporter show its last values.'
    )
  }
  if (!view || !settings) return unknown('agent', whyUnread({ pid, view }))
  if (isStarter(view)) {
    return ok('agent', `${capital(describeProcess(view))} only starts the app: the agent does ` +
      'not run in it.')
  }
  if (!preloadsAgent(settings)) return checkLostAgent(view, ancestors)
  try {
    if (readConfig(view.env ?? {}).disabled) {
      return problem('agent', `MEMWATCH_DISABLED turns off the agent of process ${pid}.`, 'Unset it.')
    }
  } catch (error) {
    return problem(
      'agent',
      `The agent of process ${pid} is off: ${/** @type {Error} */ (error).message}.`,
      'docs/config.md has the accepted values.'
    )
  }
  return answers
    ? problem(
      'agent',
      `The agent is preloaded in process ${pid}, but the exporter has no target of this process.`,
      'Give app and exporter the same MEMWATCH_SOCKET, and the app the right to connect: the ' +
        'check of the agent socket is below. With NODE_DEBUG=memwatch the agent prints messages ' +
        'on stderr.'
    )
    : unknown('agent', `The agent is preloaded in process ${pid}, but no exporter answers that ` +
      'could show its values.')
}

/**
 * @param {import('./check').ProcessView} view view of a process without the agent
 * @param {import('./check').ProcessView[]} ancestors
 */
function checkLostAgent (view, ancestors) {
  const giver = ancestors.find(({ env }) =>
    preloadOptions(splitNodeOptions(env?.NODE_OPTIONS ?? '')).length > 0)
  return giver
    ? problem(
      'agent',
      `NODE_OPTIONS of ${describeProcess(giver)} preloads the agent; NODE_OPTIONS of ${describeProcess(view)} ` +
        'does not.',
      'A program between them replaces or drops NODE_OPTIONS. Let it append to the value, or ' +
        'start node with -r memwatch/agent.'
    )
    : problem(
      'agent',
      `The agent is not loaded in ${describeProcess(view)}.`,
      'Start the process with node -r memwatch/agent, or NODE_OPTIONS="--require memwatch/agent".'
    )
}

/**
 * Checks for variables of an ancestor that the process lacks, or has with another value.
 * @param {Seen} subject
 * @returns {Check[]}
 */
function checkEnvironment ({ pid, view, ancestors }) {
  const env = view.env ?? {}
  const lost = ['NODE_OPTIONS', ...MALLOC_ENV].flatMap(name => {
    const giver = ancestors.find(ancestor => ancestor.env?.[name])
    const given = giver?.env?.[name]
    if (!giver || given === undefined) return []
    const missing = missingParts(name, given, env[name])
    if (missing === '') return []
    return problem(
      'environment',
      `${name} of ${describeProcess(giver)} holds ${missing}; process ${pid} has ` +
        `${env[name] ? name === 'NODE_OPTIONS' ? 'other options' : env[name] : 'no such variable'}.`,
      `A program between them drops it: set ${name} where that program starts node.`
    )
  })
  return lost.length > 0
    ? lost
    : [ok('environment', 'NODE_OPTIONS and the variables of malloc reached the process.')]
}

/**
 * @param {string} name
 * @param {string} given value of an ancestor's variable
 * @param {string} [own]
 * @returns {string} parts of it that the process's own value lacks
 */
function missingParts (name, given, own = '') {
  if (name === 'NODE_OPTIONS') {
    const owned = splitNodeOptions(own)
    return plainFlags(splitNodeOptions(given).filter(option => !owned.includes(option))).join(' ')
  }
  if (name === 'LD_PRELOAD') {
    return librariesIn(given).filter(library => !librariesIn(own).includes(library)).join(':')
  }
  return given === own ? '' : given
}

/**
 * Libraries in LD_PRELOAD, which are separated by colons and spaces: ld.so(8).
 * @param {string} text
 */
const librariesIn = text => text.split(/[: ]/).filter(Boolean)

/**
 * Checks for numeric flags that a later occurrence overrides.
 * @param {Seen} subject
 * @returns {Check[]}
 */
function checkFlags ({ settings }) {
  const places = { nodeOptions: 'in NODE_OPTIONS', execArgv: 'on the command line' }
  const given = flagSettings(settings).filter(({ value }) => /^\d+(\.\d+)?$/.test(value))
  const overridden = given.flatMap((flag, i) => {
    const last = given.findLast(({ name }) => name === flag.name)
    if (!last || last.value === flag.value || given.indexOf(flag) !== i) return []
    return problem(
      'flags',
      `${flag.name}=${flag.value} ${places[flag.place]} is overridden by ` +
        `${last.name}=${last.value} ${places[last.place]}.`,
      'Keep only one of them. The command line overrides NODE_OPTIONS, and a later flag ' +
        'overrides an earlier one.'
    )
  })
  if (overridden.length > 0) return overridden
  const list = given.map(({ name, value }) => `${name}=${value}`).join(' ')
  return [ok('flags', list ? `Flags in force: ${list}.` : 'No flag with a number is set.')]
}

/**
 * Checks preloaded libraries, the malloc that they provide, and its variables.
 * @param {Seen} subject
 * @returns {Check[]}
 */
function checkAllocator ({ pid, view: { maps }, settings }) {
  if (maps === null) {
    return [unknown('allocator', 'This user may not read the memory map of ' +
    `process ${pid}.`)]
  }
  const { mallocEnv, allocator, allocatorPath } = settings
  const missing = librariesIn(mallocEnv.LD_PRELOAD ?? '').filter(library => !isLoaded(library, maps))
  const unread = Object.keys(mallocEnv).filter(name => (READ_BY[name] ?? allocator) !== allocator)
  return [
    missing.length === 0
      ? ok('allocator', `malloc is that of ${allocator}${allocatorPath ? ` (${allocatorPath})` : ''}.`)
      : problem(
        'allocator',
        `LD_PRELOAD names ${missing.join(', ')}, which is not loaded: malloc is that of ${allocator}.`,
        'Install the library in the image (Debian: libjemalloc2 for jemalloc), or correct its path.'
      ),
    ...unread.map(name => problem(
      'allocator',
      `${name} is set, and malloc is that of ${allocator}: only ${READ_BY[name]} reads it.`,
      `Unset ${name}, or load ${READ_BY[name]}.`
    ))
  ]
}

/**
 * @param {string} library path or name from LD_PRELOAD, which may be a link
 * @param {string} maps text of /proc/PID/maps
 */
function isLoaded (library, maps) {
  const stem = library.replace(/^.*\//, '').replace(/\.so(\.[\d.]+)?$/, '')
  return maps.split('\n').some(line => {
    const name = line.slice(line.lastIndexOf('/') + 1)
    return line.includes('/') && (name === stem || name.startsWith(`${stem}.so`))
  })
}

/** @param {string} text */
const capital = text => text[0].toUpperCase() + text.slice(1)

module.exports = { checkAgent, checkEnvironment, checkFlags, checkAllocator }

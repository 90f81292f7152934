'use strict'

const path = require('node:path')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { flagSettings } = require('../v8/flags')
const { formatBytes } = require('../text/format')

/**
 * Decides if an advised change arrived in the process that was started next. A restart without any
 * trace of the advice is not an attempt.
 *
 * Settings of a process that an advice may concern. All but `release` and `parents` are reported by
 * its agent.
 * @typedef {import('./applied').Settings & Pick<import('@memwatch/agent/protocol/frame').Hello,
 *   'node' | 'pointerCompression'> & { memoryLimitBytes: number | null, release: string | null,
 *   parents: readonly Record<string, string>[] }} Setup memoryLimitBytes: limit of its container;
 *   release: name of the running code, null if it cannot be seen; parents: environments of its
 *   ancestors, the nearest first, empty if they cannot be seen
 *
 * arrived: the process runs with the change. lost: somebody tried, but the process does not run
 * with the change; `reason` is a clause. released: other code, another image or another Node.js
 * runs, which may contain the change.
 * @typedef {{ kind: 'arrived' | 'released' } | { kind: 'lost', reason: string }} Arrival
 */

/**
 * Tolerance of a container's limit, which the kernel rounds to pages and some orchestrators to MiB.
 */
const LIMIT_TOLERANCE = 0.02
/** Tolerance of a flag's number: processes of one workload are advised slightly different sizes. */
const FLAG_TOLERANCE = 0.05
/** Names of variables that carry flags and libraries. */
const PARENT_VARIABLES = Object.freeze(['NODE_OPTIONS', 'LD_PRELOAD'])

/**
 * @param {import('../diagnoses/define-diagnosis').Change} change
 * @param {Setup} before settings of the process for which the advice was given
 * @param {Setup} after settings of its successor
 * @returns {Arrival | null} null if there is no trace of the advice
 */
function judgeArrival (change, before, after) {
  const { flag, env, memoryLimitBytes, dockerfile, code } = change
  const limit =
    memoryLimitBytes === undefined ? [] : [judgeLimit(memoryLimitBytes, before, after)]
  if (flag) {
    const flags = flag.split(' ').map(one => judgeFlag(one, before, after))
    return joinArrivals([...flags, ...limit])
  }
  if (env) return judgeEnvironment(env, before, after)
  if (limit.length > 0) return limit[0]
  if (dockerfile !== undefined || code !== undefined) return judgeRelease(before, after)
  return null
}

/**
 * Joins the arrivals of the parts of one change: all parts must arrive.
 * @param {(Arrival | null)[]} parts
 * @returns {Arrival | null}
 */
function joinArrivals (parts) {
  const tried = parts.filter(part => part !== null)
  if (tried.length === 0) return null
  const lost = tried.find(({ kind }) => kind === 'lost')
  if (lost) return lost
  return tried.length === parts.length
    ? { kind: 'arrived' }
    : { kind: 'lost', reason: 'only a part of the change is set' }
}

/**
 * @param {string} wanted NAME=VALUE
 * @param {Setup} before
 * @param {Setup} after
 * @returns {Arrival | null}
 */
function judgeFlag (wanted, before, after) {
  const [name, value = ''] = wanted.split('=')
  const given = (/** @type {Setup} */ setup) => flagSettings(setup).filter(one => one.name === name)
  const [was, is] = [given(before), given(after)]
  const came = is.filter(one =>
    !was.some(other => other.value === one.value && other.place === one.place))
  const last = is.at(-1)
  if (last && came.includes(last) && isAdvised(last.value, value)) return { kind: 'arrived' }
  const wish = came.find(one => one.value === value)
  if (wish && last) {
    return {
      kind: 'lost',
      reason: `${PLACES[wish.place]} sets ${wanted}, but ${PLACES[last.place]} sets ` +
        `${name}=${last.value} after it, which overrides it`
    }
  }
  if (came.length > 0 && last) return { kind: 'lost', reason: compareValues(name, last.value, value) }
  const parent = after.parents.find(({ NODE_OPTIONS = '' }) =>
    splitNodeOptions(NODE_OPTIONS).map(option => option.replaceAll('_', '-'))
      .includes(wanted.replaceAll('_', '-')))
  return parent && last?.value !== value
    ? {
        kind: 'lost',
        reason: `NODE_OPTIONS of the parent process sets ${wanted}, but the process was started ` +
          'without it'
      }
    : null
}

/**
 * @param {string} is
 * @param {string} wanted
 */
const isAdvised = (is, wanted) => is === wanted ||
  Math.abs(Number(is) - Number(wanted)) <= FLAG_TOLERANCE * Number(wanted)

const PLACES = Object.freeze({ nodeOptions: 'NODE_OPTIONS', execArgv: 'the command line' })

/**
 * @param {string} name
 * @param {string} is
 * @param {string} wanted
 */
function compareValues (name, is, wanted) {
  const [value, wish] = [is, wanted].map(Number)
  const relation = value < wish ? 'below' : value > wish ? 'above' : 'not'
  return `${name} is ${is}, ${relation} the advised ${wanted}`
}

/**
 * Judges a change of environment variables. If LD_PRELOAD is among them, the others do not decide:
 * jemalloc without its settings is jemalloc, too.
 * @param {Record<string, string>} env
 * @param {Setup} before
 * @param {Setup} after
 * @returns {Arrival | null}
 */
function judgeEnvironment (env, before, after) {
  if (env.LD_PRELOAD !== undefined) return judgeLibrary(env, before, after)
  return joinArrivals(Object.entries(env).map(([name, value]) => {
    const [was, is] = [before, after].map(({ mallocEnv }) => mallocEnv[name])
    if (is === was) return null
    if (is === value) return { kind: 'arrived' }
    return is === undefined ? null : { kind: 'lost', reason: compareValues(name, is, value) }
  }))
}

/**
 * Judges the arrival of the allocator that LD_PRELOAD loads. The loader skips a library that it
 * does not find.
 * @param {Record<string, string>} env
 * @param {Setup} before
 * @param {Setup} after
 * @returns {Arrival | null}
 */
function judgeLibrary (env, before, after) {
  const library = env.LD_PRELOAD.split(/[: ]/)[0]
  const isNamed = (/** @type {string | undefined} */ text) =>
    text?.split(/[: ]/).some(file => path.posix.basename(file) === library) ?? false
  const isLoaded = ({ allocatorPath = '' }) => path.posix.basename(allocatorPath)
    .startsWith(library.split('.')[0])
  if (isLoaded(after)) return isLoaded(before) ? null : { kind: 'arrived' }
  const [was, is] = [before, after].map(({ mallocEnv }) => mallocEnv)
  if (isNamed(is.LD_PRELOAD) && !isNamed(was.LD_PRELOAD)) {
    return {
      kind: 'lost',
      reason: after.allocator === 'unknown'
        ? `LD_PRELOAD names ${library}, but the memory map is unreadable`
        : `LD_PRELOAD names ${library}, but the process runs without it: the loader did not find it`
    }
  }
  if (after.parents.some(({ LD_PRELOAD }) => isNamed(LD_PRELOAD)) && !isNamed(is.LD_PRELOAD)) {
    return {
      kind: 'lost',
      reason: `LD_PRELOAD of the parent process names ${library}, but the process was started ` +
        'without it'
    }
  }
  const others = Object.keys(env).filter(name => name !== 'LD_PRELOAD' && is[name] === env[name] &&
    was[name] !== env[name])
  return others.length > 0 && !isNamed(is.LD_PRELOAD)
    ? {
        kind: 'lost',
        reason: `${others.join(', ')} changed, but LD_PRELOAD does not name ${library}`
      }
    : null
}

/**
 * @param {number} wantedBytes
 * @param {Setup} before
 * @param {Setup} after
 * @returns {Arrival | null}
 */
function judgeLimit (wantedBytes, before, after) {
  const [was, is] = [before.memoryLimitBytes, after.memoryLimitBytes]
  if (is === was || was === null) return null
  if (is === null || is >= (1 - LIMIT_TOLERANCE) * wantedBytes) return { kind: 'arrived' }
  return is < (1 + LIMIT_TOLERANCE) * was
    ? null
    : {
        kind: 'lost',
        reason: `the memory limit is ${formatBytes(is)}, below the advised ` +
          `${formatBytes(wantedBytes)}`
      }
}

/**
 * Judges a change of code or image: only the fact that other code runs is visible, not the change
 * itself.
 * @param {Setup} before
 * @param {Setup} after
 * @returns {Arrival | null}
 */
function judgeRelease (before, after) {
  const isOther = before.node !== after.node ||
    before.pointerCompression !== after.pointerCompression ||
    (before.release !== null && after.release !== null && before.release !== after.release)
  return isOther ? { kind: 'released' } : null
}

module.exports = { judgeArrival, PARENT_VARIABLES }

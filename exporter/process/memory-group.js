'use strict'

const nodeFs = require('node:fs')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const { findParentGroup, readLines, readWords } = require('./parent-group')

/** @typedef {import('./parent-group').Fs} Fs */

/**
 * A memory cgroup for one command, as a container has.
 * https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
 * https://docs.kernel.org/admin-guide/cgroup-v2.html
 *
 * @typedef {object} MemoryGroup
 * @property {boolean} supported false if this machine allows no memory limit; then `wrap` returns
 *   the command unchanged
 * @property {string} [reason] reason why it is not supported, as text
 * @property {string} [path] directory of the cgroup
 * @property {(command: string, args: string[]) => { command: string, args: string[] }} wrap returns
 *   a command that joins the cgroup before it starts the given one, because Node.js sizes its heap
 *   only once, at its start
 * @property {() => MemoryGroupStats | undefined} stats statistics; undefined if unsupported or
 *   already removed
 * @property {() => Promise<boolean>} remove removes the cgroup; waits up to 5 s until all its
 *   processes have ended, and ends none itself
 *
 * @typedef {object} MemoryGroupStats
 * @property {number} limitBytes
 * @property {number} usageBytes including the page cache
 * @property {number} [maxUsageBytes] absent if the kernel lacks memory.peak (v2 before 5.19)
 * @property {number} limitHits number of times that usage reached the limit: memory.failcnt (v1),
 *   `max` of memory.events (v2)
 * @property {number} oomKills
 */

const PREFIX = 'memwatch-'
/** Name of the cgroup below the one with the limit. */
const INNER = 'inner'
const REMOVE_ATTEMPTS = 50
const REMOVE_PAUSE_MS = 100
// This script joins the cgroup, then becomes the command by exec. So process id, signals and exit
// code are those of the command.
const JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'

/**
 * @param {object} options
 * @param {number} options.limitBytes
 * @param {boolean} [options.onParent] true to set the limit on the parent of the process's cgroup,
 *   which has no limit of its own
 * @param {string} [options.name] part of the directory's name: letters, digits and dashes
 * @param {string} [options.procSelf] folder with this process's `cgroup` and `mountinfo` files
 * @param {Fs} [options.fs]
 * @returns {MemoryGroup}
 */
function createMemoryGroup ({
  limitBytes,
  onParent = false,
  name = 'group',
  procSelf = '/proc/self',
  fs = nodeFs
}) {
  const parent = findParentGroup(procSelf, fs)
  if ('reason' in parent) return unsupported(parent.reason)
  removeLeftovers(parent.path, fs)
  const directory = path.join(
    parent.path,
    `${PREFIX}${name}-${process.pid}-${Date.now().toString(36)}-${created++}`
  )
  try {
    fs.mkdirSync(directory)
  } catch (error) {
    return unsupported(`cannot create a memory cgroup in ${parent.path}: ${explain(error)}`)
  }
  try {
    limit(directory, parent.version, limitBytes, fs)
    if (onParent) fs.mkdirSync(path.join(directory, INNER))
  } catch (error) {
    tryRemove(directory, fs)
    return unsupported(`cannot limit the memory of a group in ${parent.path}: ${explain(error)}`)
  }
  return {
    supported: true,
    path: directory,
    wrap: (command, args) => ({
      command: '/bin/sh',
      args: ['-c', JOIN, onParent ? path.join(directory, INNER) : directory, command, ...args]
    }),
    stats: () => readStats(directory, parent.version, fs),
    async remove () {
      for (let attempt = 0; attempt < REMOVE_ATTEMPTS; attempt++) {
        if (tryRemove(directory, fs)) return true
        await wait(REMOVE_PAUSE_MS)
      }
      return false
    }
  }
}

let created = 0

/**
 * @param {string} reason
 * @returns {MemoryGroup}
 */
function unsupported (reason) {
  return {
    supported: false,
    reason,
    wrap: (command, args) => ({ command, args }),
    stats: () => undefined,
    remove: async () => true
  }
}

/**
 * @param {string} directory
 * @param {1 | 2} version
 * @param {number} limitBytes
 * @param {Fs} fs
 */
function limit (directory, version, limitBytes, fs) {
  const [memory, swap, swapBytes] = version === 1
    // The limit with swap is higher than the memory limit by more than the largest folio that is
    // charged at once (2 MiB). The kernel checks the limit with swap first, so with equal limits
    // memory.failcnt would stay 0.
    ? ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', limitBytes + 2 ** 22]
    : ['memory.max', 'memory.swap.max', 0]
  fs.writeFileSync(path.join(directory, memory), String(limitBytes))
  try {
    fs.writeFileSync(path.join(directory, swap), String(swapBytes))
  } catch { /* The kernel has no swap accounting. Without swap the memory limit is sufficient. */ }
}

/**
 * @param {string} directory
 * @param {1 | 2} version
 * @param {Fs} fs
 * @returns {MemoryGroupStats | undefined}
 */
function readStats (directory, version, fs) {
  /** @param {string} file */
  const number = (file) => Number(readWords(path.join(directory, file), fs)[0])
  /**
   * @param {string} file
   * @param {string} key
   */
  const keyed = (file, key) =>
    Number(
      readLines(path.join(directory, file), fs)
        .find(line => line.startsWith(`${key} `))
        ?.split(' ')[1] ?? 0
    )
  if (!fs.existsSync(directory)) return undefined
  if (version === 1) {
    return {
      limitBytes: number('memory.limit_in_bytes'),
      usageBytes: number('memory.usage_in_bytes'),
      maxUsageBytes: number('memory.max_usage_in_bytes'),
      limitHits: number('memory.failcnt'),
      oomKills: keyed('memory.oom_control', 'oom_kill')
    }
  }
  const peakBytes = number('memory.peak')
  return {
    limitBytes: number('memory.max'),
    usageBytes: number('memory.current'),
    ...(Number.isNaN(peakBytes) ? {} : { maxUsageBytes: peakBytes }),
    limitHits: keyed('memory.events', 'max'),
    oomKills: keyed('memory.events', 'oom_kill')
  }
}

/**
 * Removes cgroups whose creator has ended. A cgroup that still contains processes cannot be removed
 * and stays.
 * @param {string} parent
 * @param {Fs} fs
 */
function removeLeftovers (parent, fs) {
  for (const entry of fs.readdirSync(parent)) {
    const maker = entry.startsWith(PREFIX) ? /-(\d+)-[0-9a-z]+-\d+$/.exec(entry)?.[1] : undefined
    if (maker && !fs.existsSync(`/proc/${maker}`)) tryRemove(path.join(parent, entry), fs)
  }
}

/**
 * @param {string} directory
 * @param {Fs} fs
 * @returns {boolean} true if the cgroup is gone
 */
function tryRemove (directory, fs) {
  try {
    if (fs.existsSync(path.join(directory, INNER))) fs.rmdirSync(path.join(directory, INNER))
    fs.rmdirSync(directory)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT'
  }
}

/** @param {unknown} error */
function explain (error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
  if (code === 'EACCES' || code === 'EPERM') return 'not allowed (needs root)'
  if (code === 'EROFS') {
    return 'control groups are mounted read-only, as in an unprivileged container'
  }
  return message
}

module.exports = { createMemoryGroup }

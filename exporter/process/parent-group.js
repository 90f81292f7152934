'use strict'

const path = require('node:path')

/**
 * @typedef {Pick<typeof import('node:fs'), 'readFileSync' | 'writeFileSync' | 'mkdirSync' |
 *   'rmdirSync' | 'readdirSync' | 'existsSync'>} Fs
 */

/**
 * Directory in which new cgroups are created. On v1 this directory is the process's own cgroup, so
 * the limit of an outer container still applies. On v2 a cgroup with processes cannot delegate
 * controllers to children ("no internal processes"). So the directory is the own cgroup only if
 * that cgroup already delegates memory, or is the real root. Otherwise the directory is the parent
 * of the own cgroup.
 * @param {string} procSelf
 * @param {Fs} fs
 * @param {string} [controller] controller of v1, where each controller has its own directories
 * @returns {{ path: string, version: 1 | 2 } | { reason: string }}
 */
function findParentGroup (procSelf, fs, controller = 'memory') {
  const groups = readLines(path.join(procSelf, 'cgroup'), fs).map((line) => line.split(':'))
  const mounts = readLines(path.join(procSelf, 'mountinfo'), fs).map(parseMount)
  if (groups.length === 0) return { reason: 'this system has no control groups (Linux only)' }

  const v1 = groups.find(([, controllers]) => controllers.split(',').includes(controller))
  const v1Mount = mounts.find(
    ({ type, options }) => type === 'cgroup' && options.includes(controller)
  )
  if (v1 && v1Mount) return { path: ownDirectory(v1Mount, v1.slice(2).join(':'), fs), version: 1 }

  const v2 = groups.find(([hierarchy, controllers]) => hierarchy === '0' && controllers === '')
  const v2Mount = mounts.find(({ type }) => type === 'cgroup2')
  if (!v2 || !v2Mount) return { reason: 'the memory controller is not mounted' }
  const own = ownDirectory(v2Mount, v2.slice(2).join(':'), fs)
  if (!readWords(path.join(own, 'cgroup.controllers'), fs).includes('memory')) {
    return { reason: `the memory controller is not available in ${own}` }
  }
  for (const directory of own === v2Mount.directory ? [own] : [own, path.dirname(own)]) {
    if (handsOutMemory(directory, fs)) return { path: directory, version: 2 }
  }
  return {
    reason: `${own} has processes of its own, so cgroup v2 allows no memory cgroups inside it, ` +
      'and none beside it'
  }
}

/**
 * @param {string} line https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
 */
function parseMount (line) {
  const [before, after = ''] = line.split(' - ')
  const [, , , root = '', directory = ''] = before.split(' ')
  const [type = '', , options = ''] = after.split(' ')
  return { root, directory, type, options: options.split(',') }
}

/**
 * Directory of this process's cgroup. In a container the mount may show only a part of the tree
 * (its root is not `/`), or the path in /proc/self/cgroup may be a path of the host. In these cases
 * the mount point is the own cgroup.
 * @param {{ root: string, directory: string }} mount
 * @param {string} group
 * @param {Fs} fs
 */
function ownDirectory ({ root, directory }, group, fs) {
  const below = path.relative(root, group)
  const own = path.join(directory, below)
  return below.startsWith('..') || !fs.existsSync(own) ? directory : own
}

/**
 * @param {string} directory
 * @param {Fs} fs
 */
function handsOutMemory (directory, fs) {
  const control = path.join(directory, 'cgroup.subtree_control')
  if (readWords(control, fs).includes('memory')) return true
  try {
    // The kernel returns EBUSY if the cgroup has processes and is not the real root.
    fs.writeFileSync(control, '+memory')
    return true
  } catch {
    return false
  }
}

/**
 * @param {string} file
 * @param {Fs} fs
 * @returns {string[]} lines; none if the file cannot be read
 */
function readLines (file, fs) {
  try {
    return fs.readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

/**
 * @param {string} file
 * @param {Fs} fs
 * @returns {string[]} words of all lines
 */
function readWords (file, fs) {
  return readLines(file, fs).flatMap((line) => line.split(' '))
}

module.exports = { findParentGroup, readLines, readWords }

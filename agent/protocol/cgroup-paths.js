'use strict'

const path = require('node:path')

/**
 * Folders of a controller's files, from the process's own group up to the topmost visible one.
 * @typedef {object} ControllerPaths
 * @property {1 | 2} version
 * @property {string[]} folders own group first
 * @property {boolean} own true: the first folder is certainly that of the own group, not of a group
 *   above it
 */

/**
 * @param {string} controller memory or cpu
 * @param {{ cgroup: string, mountinfo: string, exists: (folder: string) => boolean }} proc texts of
 *   /proc/self/cgroup and /proc/self/mountinfo; exists: the folder holds this controller's files
 * @returns {ControllerPaths | null} null: no group, or none visible
 */
function controllerPaths (controller, { cgroup, mountinfo, exists }) {
  const groups = cgroup.split('\n').filter(Boolean).map(line => {
    // 4:memory:/kubepods/... (version 1), 0::/kubepods/... (version 2). cgroups(7).
    const [, controllers, group] = /** @type {string[]} */ (/^\d+:([^:]*):(.*)$/.exec(line) ?? [])
    return { controllers: controllers?.split(',') ?? [], group: group ?? '/' }
  })
  const mounts = mountinfo.split('\n').filter(Boolean).map(line => {
    // 36 35 98:0 /root /mount/point options ... - type source super-options. proc(5).
    const [left, right] = line.split(' - ')
    const fields = left.split(' ')
    const [type, , superOptions = ''] = (right ?? '').split(' ')
    return { root: fields[3], point: fields[4], type, controllers: superOptions.split(',') }
  })
  for (const version of /** @type {const} */ ([1, 2])) {
    const own = groups.find(({ controllers }) =>
      controllers.includes(version === 1 ? controller : '')
    )
    if (!own) continue
    // The tree may be mounted several times; not every mount shows the own group.
    for (const mount of mounts) {
      if (
        version === 1
          ? mount.type !== 'cgroup' || !mount.controllers.includes(controller)
          : mount.type !== 'cgroup2'
      ) { continue }
      const candidates = visibleFolders(mount, own.group)
      const folders = candidates.filter(exists)
      if (folders.length > 0) {
        return {
          version,
          folders,
          own: folders[0] === candidates[0] && !own.group.startsWith('/..')
        }
      }
    }
  }
  return null
}

/**
 * A container sees its group at the mount's root while /proc still names the host's path (version
 * 1, or no cgroup namespace): try the path, the path below the mount's root, then the root. A path
 * that leaves the namespace begins with /.. and shows only the root.
 * @param {{ root: string, point: string }} mount
 * @param {string} group
 */
function visibleFolders ({ root, point }, group) {
  const below = group.startsWith('/..')
    ? ''
    : root !== '/' && group.startsWith(root) ? group.slice(root.length) : group
  /** @type {string[]} */
  const folders = []
  // Remove the slash that join leaves at the end: collectors append names by concatenation.
  for (
    let at = path.posix.join(point, below).replace(/\/+$/, '') || '/';
    at.length >= point.length && at.startsWith(point);
    at = path.posix.dirname(at)
  ) {
    folders.push(at)
    if (at === point || at === '/') break
  }
  return folders
}

module.exports = { controllerPaths }

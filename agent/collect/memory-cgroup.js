'use strict'

const { existsSync, readFileSync, statSync } = require('../primordials')
const { controllerPaths } = require('../protocol/cgroup-paths')

/** The folder of a memory cgroup contains one of these files. */
const USAGE_FILES = Object.freeze(['memory.usage_in_bytes', 'memory.current'])
const LIMIT_FILES = Object.freeze({ 1: 'memory.limit_in_bytes', 2: 'memory.max' })

/**
 * Name of the memory cgroup with the tightest limit of this process: processes with the same name
 * share one limit. The name is the inode of its folder, as the path is `/` in every container with
 * a cgroup namespace.
 *
 * @param {{ read?: (file: string) => string, exists?: (file: string) => boolean,
 *   readInode?: (folder: string) => number }} [dependencies]
 * @returns {string | undefined} decimal digits; undefined: no visible memory cgroup
 */
function memoryCgroup ({
  read = file => readFileSync(file, 'utf8'),
  exists = existsSync,
  readInode = folder => statSync(folder).ino
} = {}) {
  try {
    const found = controllerPaths('memory', {
      cgroup: read('/proc/self/cgroup'),
      mountinfo: read('/proc/self/mountinfo'),
      exists: folder => USAGE_FILES.some(file => exists(`${folder}/${file}`))
    })
    if (!found) return undefined
    let least = Infinity
    let limiting = found.folders[0]
    for (const folder of found.folders) {
      const limit = readLimit(() => read(`${folder}/${LIMIT_FILES[found.version]}`))
      if (limit >= least) continue
      least = limit
      limiting = folder
    }
    const inode = readInode(limiting)
    return inode > 0 ? String(inode) : undefined
  } catch {
    return undefined // not Linux, or denied by the permission model
  }
}

/**
 * @param {() => string} read
 * @returns {number} bytes; Infinity: no limit
 */
function readLimit (read) {
  try {
    const text = read()
    return text === 'max\n' ? Infinity : Number(text)
  } catch {
    return Infinity // the root cgroup lacks the file
  }
}

module.exports = { memoryCgroup }

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { controllerPaths } = require('@memwatch/agent/protocol/cgroup-paths')

/** Files that hold the limit of a cgroup, by cgroup version. */
const LIMIT_FILES = Object.freeze({ 1: 'memory.limit_in_bytes', 2: 'memory.max' })

/**
 * The lowest memory limit of a process's cgroup and of the cgroups above it.
 * @param {string | null} cgroup text of the process's /proc/PID/cgroup
 * @returns {number | null | undefined} bytes; null without a limit below the memory of the machine;
 *   undefined if its cgroup is not visible
 */
function readMemoryLimit (cgroup) {
  if (cgroup === null) return undefined
  try {
    const found = controllerPaths('memory', {
      cgroup,
      mountinfo: fs.readFileSync('/proc/self/mountinfo', 'utf8'),
      exists: folder =>
        Object.values(LIMIT_FILES).some(name => fs.existsSync(`${folder}/${name}`))
    })
    if (!found) return undefined
    const limits = found.folders.flatMap(folder => {
      const file = `${folder}/${LIMIT_FILES[found.version]}`
      if (!fs.existsSync(file)) return [] // The topmost cgroup of version 2 has no such file.
      const text = fs.readFileSync(file, 'utf8').trim()
      return text === 'max' ? [] : Number(text)
    })
    const least = Math.min(...limits)
    return least < os.totalmem() ? least : null
  } catch {
    return undefined
  }
}

module.exports = { readMemoryLimit }

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createMemoryGroup } = require('./memory-group')
const { findParentGroup } = require('./parent-group')

/** Default period of the kernel's CPU quota: https://docs.kernel.org/scheduler/sched-bwc.html */
const PERIOD_MICROS = 100_000
/**
 * Script that joins the cgroup, then becomes the command, so that the process id stays the same.
 */
const JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'

/**
 * Creates a cgroup with a memory limit and a CPU quota, as a container has.
 * @param {{ memoryBytes: number, cores: number, name: string, onParent?: boolean }} limits name:
 *   letters and dashes; onParent: true to set the memory limit on the parent of the cgroup that
 *   contains the process
 * @throws {Error} if this machine does not allow such a cgroup
 */
function createContainerGroup ({ memoryBytes, cores, name, onParent = false }) {
  const memory = createMemoryGroup({ limitBytes: memoryBytes, name, onParent })
  if (!memory.path) throw new Error(`cannot limit the memory: ${memory.reason}`)
  const { path: memoryPath } = memory
  const cpu = limitCpu(memoryPath, cores)
  const pids = () => readPids(memoryPath)
  return {
    supported: true,
    reason: undefined,
    path: memoryPath,
    /**
     * A cgroup for clients, outside the quota, because the quota of a pod does not include its
     * clients.
     */
    clientsPath: path.dirname(cpu),
    stats: memory.stats,
    pids,
    /**
     * @param {string} command
     * @param {string[]} args
     */
    wrap (command, args) {
      return cpu === memoryPath
        ? memory.wrap(command, args)
        : memory.wrap('/bin/sh', ['-c', JOIN, cpu, command, ...args])
    },
    /** Ends every process of the group, and removes it. */
    async remove () {
      for (const pid of pids()) killIfAlive(pid)
      await memory.remove()
      if (cpu !== memoryPath) fs.rmdirSync(cpu)
    }
  }
}

/**
 * @param {string} memoryPath path of the memory cgroup
 * @param {number} cores
 * @returns {string} directory of the CPU cgroup
 */
function limitCpu (memoryPath, cores) {
  const quotaMicros = Math.round(cores * PERIOD_MICROS)
  if (fs.existsSync(path.join(memoryPath, 'memory.max'))) {
    fs.writeFileSync(path.join(path.dirname(memoryPath), 'cgroup.subtree_control'), '+cpu')
    fs.writeFileSync(path.join(memoryPath, 'cpu.max'), `${quotaMicros} ${PERIOD_MICROS}`)
    return memoryPath
  }
  const parent = findParentGroup('/proc/self', fs, 'cpu')
  if ('reason' in parent) throw new Error(`cannot limit the CPU: ${parent.reason}`)
  const directory = path.join(parent.path, path.basename(memoryPath))
  fs.mkdirSync(directory)
  fs.writeFileSync(path.join(directory, 'cpu.cfs_period_us'), String(PERIOD_MICROS))
  fs.writeFileSync(path.join(directory, 'cpu.cfs_quota_us'), String(quotaMicros))
  return directory
}

/**
 * @param {string} directory
 * @returns {number[]} pids; empty if the cgroup is gone
 */
function readPids (directory) {
  try {
    return fs
      .readFileSync(path.join(directory, 'cgroup.procs'), 'utf8')
      .trim()
      .split('\n')
      .filter(Boolean)
      .map(Number)
  } catch {
    return []
  }
}

/** @param {number} pid */
function killIfAlive (pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    /* The process has ended meanwhile. */
  }
}

module.exports = { createContainerGroup }

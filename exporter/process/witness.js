'use strict'

const fs = require('node:fs')
const { controllerPaths } = require('@memwatch/agent/protocol/cgroup-paths')

/**
 * USER_HZ, the unit of CPU time in /proc: 100 on every architecture on which Node.js runs.
 * proc_pid_stat(5).
 */
const TICKS_PER_SECOND = 100

/**
 * State of a process, read from the kernel by another process.
 * @typedef {object} Sight
 * @property {'running' | 'sleeping' | 'stopped' | 'gone'} state stopped: by SIGSTOP or a debugger;
 *   gone: dead, whether reaped or not
 * @property {number} cpuSeconds CPU time since its start; 0 when gone
 * @property {number} [rssBytes]
 * @property {Exit} [exit] exit status, until the parent has read it
 *
 * Exit status of a process: wait(2).
 * @typedef {{ code: number | null, signal: string | null }} Exit
 */

const OUR_TROUBLE = ['EMFILE', 'ENFILE', 'ENOMEM']

/** @type {Record<string, Sight['state']>} */
const STATES = {
  R: 'running',
  S: 'sleeping',
  D: 'sleeping',
  I: 'sleeping',
  T: 'stopped',
  t: 'stopped',
  Z: 'gone',
  X: 'gone',
  x: 'gone'
}

/**
 * Process probe: reads the state of another process from /proc/PID and from its memory cgroup. It
 * works only in a shared process namespace. Pid and start time in ticks must both equal those in
 * the hello, so that the probe never reports on another process with the same pid.
 */
class Witness {
  #pid
  #startTimeTicks
  /** @type {string | undefined} */
  #oomFile

  /**
   * @param {{ pid: number, startTimeTicks: number }} who
   * @param {{ read?: (file: string) => string }} [dependencies]
   */
  constructor ({ pid, startTimeTicks }, { read = file => fs.readFileSync(file, 'latin1') } = {}) {
    this.#pid = pid
    this.#startTimeTicks = startTimeTicks
    this.read = read
    const paths = this.#memoryGroup()
    // A parent cgroup would also count the deaths of other processes.
    if (paths?.own) {
      this.#oomFile = `${paths.folders[0]}/${paths.version === 1 ? 'memory.oom_control' : 'memory.events'}`
    }
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   * @param {{ read?: (file: string) => string }} [dependencies]
   * @returns {Witness | null} null if the process is not visible to this process
   */
  static of ({ pid, startTimeTicks }, dependencies) {
    if (startTimeTicks === undefined) return null
    const witness = new Witness({ pid, startTimeTicks }, dependencies)
    return witness.look().state === 'gone' ? null : witness
  }

  /** @returns {Sight} */
  look () {
    let text
    try {
      text = this.read(`/proc/${this.#pid}/stat`)
    } catch (error) {
      // If the exporter itself is out of descriptors or memory, the error says nothing about the
      // process.
      const isOurs = OUR_TROUBLE.includes(/** @type {NodeJS.ErrnoException} */ (error).code ?? '')
      return isOurs ? { state: 'sleeping', cpuSeconds: 0 } : { state: 'gone', cpuSeconds: 0 }
    }
    // The name in parentheses may contain any character, so fields are counted from the last
    // parenthesis. proc_pid_stat(5): state is field 3.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (Number(fields[22 - 3]) !== this.#startTimeTicks) return { state: 'gone', cpuSeconds: 0 }
    const state = STATES[fields[0]] ?? 'running'
    const cpuSeconds = (Number(fields[14 - 3]) + Number(fields[15 - 3])) / TICKS_PER_SECOND
    return state === 'gone'
      ? { state, cpuSeconds, exit: exitOf(Number(fields[52 - 3])) }
      : { state, cpuSeconds }
  }

  /** @returns {number | undefined} bytes; undefined if the process is gone */
  rssBytes () {
    const match = /^VmRSS:\s+(\d+) kB/m.exec(this.#tryRead(`/proc/${this.#pid}/status`) ?? '')
    return match ? Number(match[1]) * 1024 : undefined
  }

  /**
   * @returns {number | undefined} number of OOM kills in its cgroup so far; undefined if it cannot
   *   be read
   */
  oomKills () {
    const match = this.#oomFile && /^oom_kill (\d+)/m.exec(this.#tryRead(this.#oomFile) ?? '')
    return match ? Number(match[1]) : undefined
  }

  #memoryGroup () {
    const cgroup = this.#tryRead(`/proc/${this.#pid}/cgroup`)
    const mountinfo = this.#tryRead('/proc/self/mountinfo')
    if (cgroup === undefined || mountinfo === undefined) return null
    return controllerPaths('memory', {
      cgroup,
      mountinfo,
      exists: folder =>
        ['memory.oom_control', 'memory.events'].some(
          file => this.#tryRead(`${folder}/${file}`) !== undefined
        )
    })
  }

  /** @param {string} file */
  #tryRead (file) {
    try {
      return this.read(file)
    } catch {
      return undefined // The process is gone, or not readable by this user.
    }
  }
}

const { signals } = require('node:os').constants
/** @type {Record<number, string>} */
const signalNames = Object.fromEntries(
  Object.entries(signals)
    .map(([name, number]) => [number, name])
    .reverse()
)

/**
 * Decodes a wait status. Bit 7 means a core dump.
 * @param {number} status
 * @returns {Exit | undefined} exit code or signal; undefined for 0, which the kernel also shows if
 *   it hides the status
 */
function exitOf (status) {
  if (!(status > 0)) return undefined
  const signal = status & 0x7f
  return signal
    ? { code: null, signal: signalNames[signal] ?? `SIG${signal}` }
    : { code: status >> 8, signal: null }
}

module.exports = { Witness }

'use strict'

const fs = require('node:fs')
const { spawn } = require('node:child_process')
const { once } = require('node:events')

const POLL_MS = 20
/** USER_HZ of Linux. */
const TICKS_PER_SECOND = 100

/**
 * @param {number} pid
 * @returns {number} bytes; 0 if the process has ended
 */
function peakOf (pid) {
  try {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/**
 * @param {number} pid
 * @returns {number} CPU seconds of all its threads; 0 if the process has ended
 */
function cpuOf (pid) {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  } catch {
    return 0
  }
}

/**
 * @param {number} pid
 * @returns {number[]}
 */
function childrenOf (pid) {
  try {
    const text = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/**
 * Measures a command from its start to its end.
 * @param {string[]} command
 * @param {{ timeoutSeconds?: number }} [options]
 * @returns {Promise<{ status: number | null, stdout: string, stderr: string, seconds: number,
 *   cpuSeconds: number, peakBytes: number }>} peakBytes: peak RSS of the process plus the peaks of
 *   its children; cpuSeconds: CPU time of all of them
 */
async function measure ([file, ...args], { timeoutSeconds = 1800 } = {}) {
  const startedAt = performance.now()
  const child = spawn(file, args, { timeout: timeoutSeconds * 1000, killSignal: 'SIGKILL' })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', chunk => { output.stdout += chunk })
  child.stderr.on('data', chunk => { output.stderr += chunk })
  /** @type {Map<number, number>} */
  const peaks = new Map()
  /** @type {Map<number, number>} */
  const cpus = new Map()
  const pid = Number(child.pid)
  const timer = setInterval(() => {
    for (const each of [pid, ...childrenOf(pid)]) {
      peaks.set(each, Math.max(peaks.get(each) ?? 0, peakOf(each)))
      cpus.set(each, Math.max(cpus.get(each) ?? 0, cpuOf(each)))
    }
  }, POLL_MS)
  const [status] = await once(child, 'close')
  clearInterval(timer)
  const seconds = (performance.now() - startedAt) / 1000
  const sum = (/** @type {Map<number, number>} */ of) => [...of.values()].reduce((a, b) => a + b, 0)
  return { status, ...output, seconds, cpuSeconds: sum(cpus), peakBytes: sum(peaks) }
}

module.exports = { measure }

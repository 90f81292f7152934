'use strict'

const fs = require('node:fs')
const { spawn } = require('node:child_process')
const { once } = require('node:events')

const POLL_MS = 20

/** @param {number} pid @returns {number} bytes; 0 when it has ended */
function peakOf (pid) {
  try {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/** @param {number} pid @returns {number[]} */
function childrenOf (pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/**
 * A command from its start to its end.
 * @param {string[]} command
 * @param {{ timeoutSeconds?: number }} [options]
 * @returns {Promise<{ status: number | null, stdout: string, stderr: string, seconds: number,
 *   peakBytes: number }>} peakBytes: most resident memory of the process and, added, of each of its
 *   children
 */
async function measure ([file, ...args], { timeoutSeconds = 1800 } = {}) {
  const startedAt = performance.now()
  const child = spawn(file, args, { timeout: timeoutSeconds * 1000, killSignal: 'SIGKILL' })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', chunk => { output.stdout += chunk })
  child.stderr.on('data', chunk => { output.stderr += chunk })
  /** @type {Map<number, number>} */
  const peaks = new Map()
  const pid = Number(child.pid)
  const timer = setInterval(() => {
    for (const each of [pid, ...childrenOf(pid)]) {
      peaks.set(each, Math.max(peaks.get(each) ?? 0, peakOf(each)))
    }
  }, POLL_MS)
  const [status] = await once(child, 'close')
  clearInterval(timer)
  const seconds = (performance.now() - startedAt) / 1000
  const peakBytes = [...peaks.values()].reduce((sum, bytes) => sum + bytes, 0)
  return { status, ...output, seconds, peakBytes }
}

module.exports = { measure }

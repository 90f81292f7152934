'use strict'

const { cpuUsage, readFileSync, threadCpuUsage } = require('../primordials')
const { isTemporary } = require('../read-file')

const MICROSECONDS = 1e6
const NANOSECONDS = 1e9
/** Interval of readings, and their place in it: expensive readings run in different frames. */
const WAIT_EVERY_FRAMES = 5
const TURN = 4
/** Without CPU, frames come seconds apart, and the wait matters most. */
const WAIT_AT_LATEST_SECONDS = 6

/** CPU time of the process, for the main thread only. @returns {import('./collector').Collector} */
function processCpu () {
  return {
    fields: ['cpuUserSeconds', 'cpuSystemSeconds'],
    read (values) {
      const { user, system } = cpuUsage()
      values.cpuUserSeconds = user / MICROSECONDS
      values.cpuSystemSeconds = system / MICROSECONDS
    }
  }
}

/** CPU time of this thread, since Node 22. @returns {import('./collector').Collector} */
function threadCpu () {
  return {
    fields: ['threadCpuUserSeconds', 'threadCpuSystemSeconds'],
    read (values) {
      if (!threadCpuUsage) return
      const { user, system } = threadCpuUsage()
      values.threadCpuUserSeconds = user / MICROSECONDS
      values.threadCpuSystemSeconds = system / MICROSECONDS
    }
  }
}

/**
 * Time that this thread ran on a CPU, and waited for one: sched-stats.rst of Linux. Kernels without
 * CONFIG_SCHED_INFO lack the file.
 * @param {{ read?: (file: string) => string }} [dependencies]
 * @returns {import('./collector').Collector}
 */
function runQueue ({ read = readInOneCall } = {}) {
  let known = true
  let readAtSeconds = -Infinity
  return {
    fields: ['threadRunSeconds', 'runQueueWaitSeconds'],
    read (values, { count, nowSeconds }) {
      if (!known) return
      const isLate = nowSeconds - readAtSeconds >= WAIT_AT_LATEST_SECONDS
      if (!isLate && count % WAIT_EVERY_FRAMES !== TURN) return
      readAtSeconds = nowSeconds
      try {
        const text = read('/proc/thread-self/schedstat')
        values.threadRunSeconds = parseInt(text, 10) / NANOSECONDS
        values.runQueueWaitSeconds = parseInt(text.slice(text.indexOf(' ') + 1), 10) / NANOSECONDS
      } catch (error) {
        known = isTemporary(error)
      }
    }
  }
}

/**
 * One call of C++ opens, reads and closes the file with this encoding: an app may terminate a
 * worker between two calls, and `trackUnmanagedFds: false` leaves its descriptors open.
 * @param {string} file
 */
const readInOneCall = file => readFileSync(file, 'utf8')

module.exports = { processCpu, threadCpu, runQueue }

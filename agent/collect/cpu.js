'use strict'

const { keptFileReader } = require('../read-file')

const MICROSECONDS = 1e6
const NANOSECONDS = 1e9
/** It is looked at over tens of seconds. */
const WAIT_EVERY_FRAMES = 2

/** CPU time of the process; of the main thread only, as it is process-wide. @returns {import('./collector').Collector} */
function processCpu () {
  return {
    fields: ['cpuUserSeconds', 'cpuSystemSeconds'],
    read (values) {
      const { user, system } = process.cpuUsage()
      values.cpuUserSeconds = user / MICROSECONDS
      values.cpuSystemSeconds = system / MICROSECONDS
    }
  }
}

/** CPU time of this thread, where Node tells it. @returns {import('./collector').Collector} */
function threadCpu () {
  const usage = /** @type {{ threadCpuUsage?: () => NodeJS.CpuUsage }} */ (process).threadCpuUsage
  return {
    fields: ['threadCpuUserSeconds', 'threadCpuSystemSeconds'],
    read (values) {
      if (!usage) return
      const { user, system } = usage.call(process)
      values.threadCpuUserSeconds = user / MICROSECONDS
      values.threadCpuSystemSeconds = system / MICROSECONDS
    }
  }
}

/**
 * How long this thread waited for a CPU: Documentation/scheduler/sched-stats.rst, "time spent waiting on a runqueue". Kernels without
 * CONFIG_SCHED_INFO have no such file.
 * @param {{ read?: ((file: string) => string) & { close?: () => void } }} [dependencies]
 * @returns {import('./collector').Collector}
 */
function runQueue ({ read = keptFileReader() } = {}) {
  let known = true
  return {
    fields: ['runQueueWaitSeconds'],
    read (values, { count }) {
      if (!known || count % WAIT_EVERY_FRAMES !== 0) return
      try {
        const text = read('/proc/thread-self/schedstat')
        values.runQueueWaitSeconds = parseInt(text.slice(text.indexOf(' ') + 1), 10) / NANOSECONDS
      } catch (error) {
        // EMFILE and ENFILE: the process is out of descriptors, for now.
        known = Boolean(/** @type {NodeJS.ErrnoException} */ (error).code?.endsWith('FILE'))
      }
    },
    stop () {
      read.close?.()
    }
  }
}

module.exports = { processCpu, threadCpu, runQueue }

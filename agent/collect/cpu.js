'use strict'

const MICROSECONDS = 1e6

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

module.exports = { processCpu, threadCpu }

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { keptFileReader } = require('../read-file')
const { controllerPaths } = require('./cgroup-paths')

/** @typedef {import('./collector').Values} Values */

/** Limits, events and pressure change rarely: every so many frames, one group of files a frame. */
const EVERY_FRAMES = 5
const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/** Number behind a key of a `key value` file. @param {string} text @param {string} key @returns {number | undefined} */
function keyed (text, key) {
  const match = new RegExp(`^${key} (\\d+)$`, 'm').exec(text)
  return match ? Number(match[1]) : undefined
}

/** Total of a pressure line in seconds. Documentation/accounting/psi.rst. @param {string} text @param {'some' | 'full'} which */
function pressureSeconds (text, which) {
  const match = new RegExp(`^${which} .*total=(\\d+)$`, 'm').exec(text)
  return match ? Number(match[1]) / MICROSECONDS : undefined
}

/**
 * What the container allows and uses, from the cgroup files, version 1 and 2. A limit is the smallest of the own group and
 * all parents that can be seen; `max`, 2^63 and more than the machine has mean none.
 *
 * @param {object} [dependencies]
 * @param {((file: string) => string) & { close?: () => void }} [dependencies.read]
 * @param {(file: string) => boolean} [dependencies.exists]
 * @param {number} [dependencies.hostMemoryBytes]
 * @returns {import('./collector').Collector}
 */
function cgroup ({ read = keptFileReader(), exists = fs.existsSync, hostMemoryBytes = os.totalmem() } = {}) {
  /** @type {import('./cgroup-paths').ControllerPaths | null} */
  let memory = null
  /** @type {import('./cgroup-paths').ControllerPaths | null} */
  let cpu = null
  /** @type {number | undefined} */
  let limitBytes
  /** Files that this kernel does not have. @type {Set<string>} */
  const absent = new Set()

  /** @param {string} file @returns {string | undefined} */
  const tryRead = file => {
    if (absent.has(file)) return undefined
    try {
      return read(file)
    } catch (error) {
      // EMFILE and ENFILE: the process is out of descriptors, for now.
      const { code } = /** @type {NodeJS.ErrnoException} */ (error)
      if (!code?.endsWith('FILE')) absent.add(file)
      return undefined
    }
  }
  /** Smallest number in that file over all folders. @param {string} name @returns {number | undefined} undefined: no limit */
  const smallest = name => {
    let least = Infinity
    for (const folder of memory?.folders ?? []) {
      const text = tryRead(path.posix.join(folder, name))
      if (text !== undefined && text !== 'max\n') least = Math.min(least, Number(text))
    }
    return least < hostMemoryBytes ? least : undefined
  }
  /** @param {Values} values @param {keyof Values} field @param {number | undefined} value */
  const set = (values, field, value) => { if (value !== undefined && !Number.isNaN(value)) values[field] = value }

  /** @param {Values} values */
  const readUsage = values => {
    if (!memory) return
    const own = memory.folders[0]
    set(values, 'containerUsageBytes', Number(tryRead(path.posix.join(own, memory.version === 1 ? 'memory.usage_in_bytes' : 'memory.current'))))
    set(values, 'containerLimitBytes', limitBytes)
  }
  /** @param {Values} values */
  const readLimit = values => {
    limitBytes = smallest(memory?.version === 1 ? 'memory.limit_in_bytes' : 'memory.max')
    if (limitBytes === undefined) delete values.containerLimitBytes
    else values.containerLimitBytes = limitBytes
  }
  /** @param {Values} values */
  const readStat = values => {
    if (!memory || values.containerUsageBytes === undefined) return
    const text = tryRead(path.posix.join(memory.folders[0], 'memory.stat')) ?? ''
    const inactive = keyed(text, memory.version === 1 ? 'total_inactive_file' : 'inactive_file')
    if (inactive !== undefined) set(values, 'containerWorkingSetBytes', Math.max(0, values.containerUsageBytes - inactive))
  }
  /** @param {Values} values */
  const readEvents = values => {
    if (!memory) return
    const own = memory.folders[0]
    if (memory.version === 1) {
      set(values, 'containerLimitHits', Number(tryRead(path.posix.join(own, 'memory.failcnt'))))
      set(values, 'containerOomKills', keyed(tryRead(path.posix.join(own, 'memory.oom_control')) ?? '', 'oom_kill'))
      return
    }
    const events = tryRead(path.posix.join(own, 'memory.events')) ?? ''
    set(values, 'containerLimitHits', keyed(events, 'max'))
    set(values, 'containerHighHits', keyed(events, 'high'))
    set(values, 'containerOomEvents', keyed(events, 'oom'))
    set(values, 'containerOomKills', keyed(events, 'oom_kill'))
    set(values, 'containerHighBytes', smallest('memory.high'))
  }
  /** @param {Values} values */
  const readPressure = values => {
    if (memory?.version !== 2) return // version 1 has none of its own
    const text = tryRead(path.posix.join(memory.folders[0], 'memory.pressure')) ?? ''
    set(values, 'memoryPressureSomeSeconds', pressureSeconds(text, 'some'))
    set(values, 'memoryPressureFullSeconds', pressureSeconds(text, 'full'))
    if (cpu) set(values, 'cpuPressureSomeSeconds', pressureSeconds(tryRead(path.posix.join(cpu.folders[0], 'cpu.pressure')) ?? '', 'some'))
  }
  /** @param {Values} values */
  const readCpu = values => {
    if (!cpu) return
    let cores = Infinity
    for (const folder of cpu.folders) {
      const [quota, period] = cpu.version === 2
        ? (tryRead(path.posix.join(folder, 'cpu.max')) ?? '').split(' ')
        : [tryRead(path.posix.join(folder, 'cpu.cfs_quota_us')), tryRead(path.posix.join(folder, 'cpu.cfs_period_us'))]
      const share = Number(quota) / Number(period)
      if (share > 0) cores = Math.min(cores, share)
    }
    if (cores < Infinity) values.cpuQuotaCores = cores
    const stat = tryRead(path.posix.join(cpu.folders[0], 'cpu.stat')) ?? ''
    set(values, 'cpuPeriods', keyed(stat, 'nr_periods'))
    set(values, 'cpuThrottledPeriods', keyed(stat, 'nr_throttled'))
    const throttled = cpu.version === 2 ? keyed(stat, 'throttled_usec') : keyed(stat, 'throttled_time')
    if (throttled !== undefined) values.cpuThrottledSeconds = throttled / (cpu.version === 2 ? MICROSECONDS : NANOSECONDS)
  }

  const rarely = [readLimit, readEvents, readPressure, readCpu, readStat]
  let begun = false
  return {
    fields: [
      'containerLimitBytes', 'containerHighBytes', 'containerUsageBytes', 'containerWorkingSetBytes', 'containerLimitHits',
      'containerHighHits', 'containerOomEvents', 'containerOomKills', 'memoryPressureSomeSeconds',
      'memoryPressureFullSeconds', 'cpuPressureSomeSeconds', 'cpuQuotaCores', 'cpuPeriods', 'cpuThrottledPeriods',
      'cpuThrottledSeconds'
    ],
    start () {
      const cgroup = tryRead('/proc/self/cgroup')
      const mountinfo = tryRead('/proc/self/mountinfo')
      if (cgroup === undefined || mountinfo === undefined) return
      const find = (/** @type {string} */ controller, /** @type {string[]} */ files) => controllerPaths(controller, {
        cgroup, mountinfo, exists: folder => files.some(file => exists(path.posix.join(folder, file)))
      })
      memory = find('memory', ['memory.usage_in_bytes', 'memory.current'])
      cpu = find('cpu', ['cpu.cfs_quota_us', 'cpu.max', 'cpu.stat'])
    },
    read (values, { count }) {
      readUsage(values)
      if (begun) rarely[count % EVERY_FRAMES](values)
      else for (const readGroup of rarely) readGroup(values)
      begun = true
    },
    stop () {
      read.close?.()
    }
  }
}

module.exports = { cgroup }

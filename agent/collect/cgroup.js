'use strict'

const os = require('node:os')
const { existsSync } = require('../primordials')
const { isTemporary, kernelFiles, numberAfter } = require('../read-file')
const { controllerPaths } = require('./cgroup-paths')

/** @typedef {import('./collector').Values} Values */

/** Each reading is taken so often. */
const EVERY_FRAMES = 10
const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/**
 * Number behind a key of a `key value` file.
 * @param {string} text
 * @param {string} key
 * @returns {number | undefined}
 */
const keyed = (text, key) => numberAfter(text, `${key} `)

/**
 * As path.join does, but cheaper: it normalizes character by character.
 * @param {string} folder
 * @param {string} name
 */
const inFolder = (folder, name) => `${folder}/${name}`

/**
 * Total of a pressure line in seconds. Documentation/accounting/psi.rst.
 * @param {string} text
 * @param {'some' | 'full'} which
 */
function pressureSeconds (text, which) {
  const line = text.indexOf(`${which} `)
  const total = line < 0 ? undefined : numberAfter(text.slice(line), 'total=')
  return total === undefined ? undefined : total / MICROSECONDS
}

/**
 * What the container allows and uses, from the cgroup files, version 1 and 2. A limit is the
 * smallest of the own group and all parents that can be seen; `max`, 2^63 and more than the machine
 * has mean none.
 *
 * @param {object} [dependencies]
 * @param {Pick<import('../read-file').KernelFiles, 'read' | 'readKept'>} [dependencies.files]
 * @param {(file: string) => boolean} [dependencies.exists]
 * @param {number} [dependencies.hostMemoryBytes]
 * @param {number} [dependencies.fallbackLimitBytes] the limit where no cgroup can be read; 0 is
 *   none
 * @returns {import('./collector').Collector}
 */
function cgroup ({
  files = kernelFiles(),
  exists = existsSync,
  hostMemoryBytes = os.totalmem(),
  fallbackLimitBytes = 0
} = {}) {
  /** @type {import('./cgroup-paths').ControllerPaths | null} */
  let memory = null
  /** @type {import('./cgroup-paths').ControllerPaths | null} */
  let cpu = null
  /** @type {number | undefined} */
  let limitBytes
  let usageBytes = NaN
  /** Files that this kernel does not have. @type {Set<string>} */
  const absent = new Set()

  /**
   * @param {string} file
   * @param {(file: string) => string} [read]
   * @returns {string | undefined}
   */
  const tryRead = (file, read = files.read) => {
    if (absent.has(file)) return undefined
    try {
      return read(file)
    } catch (error) {
      if (!isTemporary(error)) absent.add(file)
      return undefined
    }
  }
  /**
   * Smallest number in that file over all folders.
   * @param {string} name
   * @returns {number | undefined} undefined: no limit
   */
  const smallest = name => {
    let least = Infinity
    for (const folder of memory?.folders ?? []) {
      const text = tryRead(inFolder(folder, name))
      if (text !== undefined && text !== 'max\n') least = Math.min(least, Number(text))
    }
    return least < hostMemoryBytes ? least : undefined
  }
  /**
   * @param {Values} values
   * @param {import('../frame').NumberField} field
   * @param {number | undefined} value
   */
  const set = (values, field, value) => {
    if (value !== undefined && !Number.isNaN(value)) values[field] = value
  }

  /** @param {Values} values */
  const readLimit = values => {
    if (memory) limitBytes = smallest(memory.version === 1 ? 'memory.limit_in_bytes' : 'memory.max')
    // Without a limit the downward API says what the node has for pods: that is believed only where
    // nothing else is known.
    else if (fallbackLimitBytes > 0 && fallbackLimitBytes < hostMemoryBytes) {
      limitBytes = fallbackLimitBytes
    }
    set(values, 'containerLimitBytes', limitBytes)
  }
  /** @param {Values} values */
  const readUsage = values => {
    if (!memory) return
    usageBytes = Number(
      tryRead(
        inFolder(
          memory.folders[0],
          memory.version === 1 ? 'memory.usage_in_bytes' : 'memory.current'
        ),
        files.readKept
      )
    )
    set(values, 'containerUsageBytes', usageBytes)
    set(values, 'containerLimitBytes', limitBytes)
  }
  /** @param {Values} values */
  const readStat = values => {
    if (!memory) return
    const inactive = keyed(
      tryRead(inFolder(memory.folders[0], 'memory.stat')) ?? '',
      memory.version === 1 ? 'total_inactive_file' : 'inactive_file'
    )
    if (inactive !== undefined) {
      set(values, 'containerWorkingSetBytes', Math.max(0, usageBytes - inactive))
    }
  }
  /** @param {Values} values */
  const readEvents = values => {
    if (!memory) return
    const own = memory.folders[0]
    if (memory.version === 1) {
      set(values, 'containerLimitHits', Number(tryRead(inFolder(own, 'memory.failcnt'))))
      set(
        values,
        'containerOomKills',
        keyed(tryRead(inFolder(own, 'memory.oom_control'), files.readKept) ?? '', 'oom_kill')
      )
      return
    }
    const events = tryRead(inFolder(own, 'memory.events'), files.readKept) ?? ''
    set(values, 'containerLimitHits', keyed(events, 'max'))
    set(values, 'containerHighHits', keyed(events, 'high'))
    set(values, 'containerOomEvents', keyed(events, 'oom'))
    set(values, 'containerOomKills', keyed(events, 'oom_kill'))
  }
  /** @param {Values} values */
  const readHigh = values => {
    if (memory?.version === 2) set(values, 'containerHighBytes', smallest('memory.high'))
  }
  /** @param {Values} values */
  const readPressure = values => {
    if (memory?.version !== 2) return // version 1 has none of its own
    const text = tryRead(inFolder(memory.folders[0], 'memory.pressure')) ?? ''
    set(values, 'memoryPressureSomeSeconds', pressureSeconds(text, 'some'))
    set(values, 'memoryPressureFullSeconds', pressureSeconds(text, 'full'))
    if (cpu) {
      set(
        values,
        'cpuPressureSomeSeconds',
        pressureSeconds(tryRead(inFolder(cpu.folders[0], 'cpu.pressure')) ?? '', 'some')
      )
    }
  }
  /** @param {Values} values */
  const readQuota = values => {
    let cores = Infinity
    for (const folder of cpu?.folders ?? []) {
      const [quota, period] =
        cpu?.version === 2
          ? (tryRead(inFolder(folder, 'cpu.max')) ?? '').split(' ')
          : [
              tryRead(inFolder(folder, 'cpu.cfs_quota_us')),
              tryRead(inFolder(folder, 'cpu.cfs_period_us'))
            ]
      const share = Number(quota) / Number(period)
      if (share > 0) cores = Math.min(cores, share)
    }
    if (cores < Infinity) values.cpuQuotaCores = cores
  }
  /** @param {Values} values */
  const readThrottling = values => {
    if (!cpu) return
    const stat = tryRead(inFolder(cpu.folders[0], 'cpu.stat')) ?? ''
    set(values, 'cpuPeriods', keyed(stat, 'nr_periods'))
    set(values, 'cpuThrottledPeriods', keyed(stat, 'nr_throttled'))
    const throttled =
      cpu.version === 2 ? keyed(stat, 'throttled_usec') : keyed(stat, 'throttled_time')
    if (throttled !== undefined) {
      values.cpuThrottledSeconds = throttled / (cpu.version === 2 ? MICROSECONDS : NANOSECONDS)
    }
  }

  // One group a frame, as each file costs system calls, cold by then: opening takes longer than
  // reading, and only what tells most is kept open. The kernel sums memory.stat up for its reader,
  // and an operator hardly ever changes settings: one of them takes a turn of the last place.
  const readings = [readUsage, readEvents, readThrottling, readPressure]
  const rare = [readStat, readLimit, readStat, readHigh, readStat, readQuota]
  let begun = false
  return {
    fields: [
      'containerLimitBytes',
      'containerHighBytes',
      'containerUsageBytes',
      'containerWorkingSetBytes',
      'containerLimitHits',
      'containerHighHits',
      'containerOomEvents',
      'containerOomKills',
      'memoryPressureSomeSeconds',
      'memoryPressureFullSeconds',
      'cpuPressureSomeSeconds',
      'cpuQuotaCores',
      'cpuPeriods',
      'cpuThrottledPeriods',
      'cpuThrottledSeconds'
    ],
    start () {
      const cgroup = tryRead('/proc/self/cgroup')
      const mountinfo = tryRead('/proc/self/mountinfo')
      if (cgroup === undefined || mountinfo === undefined) return
      const find = (/** @type {string} */ controller, /** @type {string[]} */ files) =>
        controllerPaths(controller, {
          cgroup,
          mountinfo,
          exists: folder => files.some(file => exists(inFolder(folder, file)))
        })
      memory = find('memory', ['memory.usage_in_bytes', 'memory.current'])
      cpu = find('cpu', ['cpu.cfs_quota_us', 'cpu.max', 'cpu.stat'])
    },
    read (values, { count }) {
      const turn = count % EVERY_FRAMES
      if (!begun) {
        for (const readGroup of [readLimit, ...readings, readStat, readHigh, readQuota]) {
          readGroup(values)
        }
      } else if (turn < readings.length) readings[turn](values)
      else if (turn === readings.length) {
        rare[Math.floor(count / EVERY_FRAMES) % rare.length](values)
      }
      begun = true
    }
  }
}

module.exports = { cgroup }

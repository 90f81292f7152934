'use strict'

const os = require('node:os')
const { existsSync } = require('../primordials')
const { isTemporary, kernelFiles, numberAfter } = require('../read-file')
const { controllerPaths } = require('../protocol/cgroup-paths')

/** @typedef {import('./collector').Values} Values */

const EVERY_FRAMES = 10
const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/** Number of a key in a `key value` file. */
const keyed = (/** @type {string} */ text, /** @type {string} */ key) =>
  numberAfter(text, `${key} `)

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
 * Limits and usage of the container, from the cgroup files of version 1 and 2. A limit is the
 * smallest of the own group and its visible parents; `max`, 2^63 and more than the machine's memory
 * mean no limit.
 */
class Cgroup {
  /** @type {readonly (keyof Values)[]} */
  fields = [
    'containerLimitBytes', 'containerHighBytes', 'containerUsageBytes', 'containerWorkingSetBytes',
    'containerLimitHits', 'containerHighHits', 'containerOomEvents', 'containerOomKills',
    'memoryPressureSomeSeconds', 'memoryPressureFullSeconds', 'cpuPressureSomeSeconds',
    'cpuQuotaCores', 'cpuPeriods', 'cpuThrottledPeriods', 'cpuThrottledSeconds'
  ]

  #files
  #exists
  #hostMemoryBytes
  #fallbackLimitBytes
  /** @type {import('../protocol/cgroup-paths').ControllerPaths | null} */
  #memory = null
  /** @type {import('../protocol/cgroup-paths').ControllerPaths | null} */
  #cpu = null
  /** @type {number | undefined} */
  #limitBytes
  #usageBytes = NaN
  /** Files that this kernel lacks. @type {Set<string>} */
  #absent = new Set()
  #isFirst = true
  // Each frame reads one group of files: each file costs several system calls in cold code. Opening
  // takes longer than reading, so the most useful files stay open. The last group alternates
  // between memory.stat, which the kernel sums for each reader, and settings.
  #readings = [this.#readUsage, this.#readEvents, this.#readThrottling, this.#readPressure]
  #rare = [
    this.#readStat,
    this.#readLimit,
    this.#readStat,
    this.#readHigh,
    this.#readStat,
    this.#readQuota
  ]

  /**
   * @param {{ files?: Pick<import('../read-file').KernelFiles, 'read' | 'readKept'>,
   *   exists?: (file: string) => boolean, hostMemoryBytes?: number, fallbackLimitBytes?: number
   *   }} [dependencies] fallbackLimitBytes: limit without a readable cgroup; 0: none
   */
  constructor ({
    files = kernelFiles(),
    exists = existsSync,
    hostMemoryBytes = os.totalmem(),
    fallbackLimitBytes = 0
  } = {}) {
    this.#files = files
    this.#exists = exists
    this.#hostMemoryBytes = hostMemoryBytes
    this.#fallbackLimitBytes = fallbackLimitBytes
  }

  start () {
    const cgroup = this.#tryRead('/proc/self/cgroup')
    const mountinfo = this.#tryRead('/proc/self/mountinfo')
    if (cgroup === undefined || mountinfo === undefined) return
    const find = (/** @type {string} */ controller, /** @type {string[]} */ files) =>
      controllerPaths(controller, {
        cgroup,
        mountinfo,
        exists: folder => files.some(file => this.#exists(`${folder}/${file}`))
      })
    this.#memory = find('memory', ['memory.usage_in_bytes', 'memory.current'])
    this.#cpu = find('cpu', ['cpu.cfs_quota_us', 'cpu.max', 'cpu.stat'])
  }

  /**
   * @param {Values} values
   * @param {import('./collector').Tick} tick
   */
  read (values, { count }) {
    const turn = count % EVERY_FRAMES
    if (this.#isFirst) {
      for (const readGroup of new Set([...this.#readings, ...this.#rare])) {
        readGroup.call(this, values)
      }
    } else if (turn < this.#readings.length) this.#readings[turn].call(this, values)
    else if (turn === this.#readings.length) {
      this.#rare[Math.floor(count / EVERY_FRAMES) % this.#rare.length].call(this, values)
    }
    this.#isFirst = false
  }

  /**
   * @param {string} file
   * @param {(file: string) => string} [read]
   * @returns {string | undefined}
   */
  #tryRead (file, read = this.#files.read) {
    if (this.#absent.has(file)) return undefined
    try {
      return read(file)
    } catch (error) {
      if (!isTemporary(error)) this.#absent.add(file)
      return undefined
    }
  }

  /**
   * Smallest number of this file in all folders.
   * @param {string} name
   * @returns {number | undefined} undefined: no limit
   */
  #smallest (name) {
    let least = Infinity
    for (const folder of this.#memory?.folders ?? []) {
      const text = this.#tryRead(`${folder}/${name}`)
      if (text !== undefined && text !== 'max\n') least = Math.min(least, Number(text))
    }
    return least < this.#hostMemoryBytes ? least : undefined
  }

  /** @param {Values} values */
  #readLimit (values) {
    if (this.#memory) {
      const { version } = this.#memory
      this.#limitBytes = this.#smallest(version === 1 ? 'memory.limit_in_bytes' : 'memory.max')
    // Without a limit the downward API reports the memory of the node: a last resort.
    } else if (this.#fallbackLimitBytes > 0 && this.#fallbackLimitBytes < this.#hostMemoryBytes) {
      this.#limitBytes = this.#fallbackLimitBytes
    }
    set(values, 'containerLimitBytes', this.#limitBytes)
  }

  /** @param {Values} values */
  #readUsage (values) {
    if (!this.#memory) return
    const { folders: [own], version } = this.#memory
    const file = version === 1 ? 'memory.usage_in_bytes' : 'memory.current'
    this.#usageBytes = Number(this.#tryRead(`${own}/${file}`, this.#files.readKept))
    set(values, 'containerUsageBytes', this.#usageBytes)
    set(values, 'containerLimitBytes', this.#limitBytes)
  }

  /** @param {Values} values */
  #readStat (values) {
    if (!this.#memory) return
    const { folders: [own], version } = this.#memory
    const key = version === 1 ? 'total_inactive_file' : 'inactive_file'
    const inactive = keyed(this.#tryRead(`${own}/memory.stat`) ?? '', key)
    if (inactive !== undefined) {
      set(values, 'containerWorkingSetBytes', Math.max(0, this.#usageBytes - inactive))
    }
  }

  /** @param {Values} values */
  #readEvents (values) {
    if (!this.#memory) return
    const { folders: [own], version } = this.#memory
    if (version === 1) {
      set(values, 'containerLimitHits', Number(this.#tryRead(`${own}/memory.failcnt`)))
      const control = this.#tryRead(`${own}/memory.oom_control`, this.#files.readKept)
      set(values, 'containerOomKills', keyed(control ?? '', 'oom_kill'))
      return
    }
    const events = this.#tryRead(`${own}/memory.events`, this.#files.readKept) ?? ''
    set(values, 'containerLimitHits', keyed(events, 'max'))
    set(values, 'containerHighHits', keyed(events, 'high'))
    set(values, 'containerOomEvents', keyed(events, 'oom'))
    set(values, 'containerOomKills', keyed(events, 'oom_kill'))
  }

  /** @param {Values} values */
  #readHigh (values) {
    if (this.#memory?.version !== 2) return
    set(values, 'containerHighBytes', this.#smallest('memory.high'))
  }

  /** @param {Values} values */
  #readPressure (values) {
    if (this.#memory?.version !== 2) return // version 1 has no such files
    const text = this.#tryRead(`${this.#memory.folders[0]}/memory.pressure`) ?? ''
    set(values, 'memoryPressureSomeSeconds', pressureSeconds(text, 'some'))
    set(values, 'memoryPressureFullSeconds', pressureSeconds(text, 'full'))
    if (this.#cpu) {
      const text = this.#tryRead(`${this.#cpu.folders[0]}/cpu.pressure`) ?? ''
      set(values, 'cpuPressureSomeSeconds', pressureSeconds(text, 'some'))
    }
  }

  /** @param {Values} values */
  #readQuota (values) {
    let cores = Infinity
    for (const folder of this.#cpu?.folders ?? []) {
      const [quota, period] =
        this.#cpu?.version === 2
          ? (this.#tryRead(`${folder}/cpu.max`) ?? '').split(' ')
          : [
              this.#tryRead(`${folder}/cpu.cfs_quota_us`),
              this.#tryRead(`${folder}/cpu.cfs_period_us`)
            ]
      const share = Number(quota) / Number(period)
      if (share > 0) cores = Math.min(cores, share)
    }
    if (cores < Infinity) values.cpuQuotaCores = cores
  }

  /** @param {Values} values */
  #readThrottling (values) {
    if (!this.#cpu) return
    const stat = this.#tryRead(`${this.#cpu.folders[0]}/cpu.stat`) ?? ''
    set(values, 'cpuPeriods', keyed(stat, 'nr_periods'))
    set(values, 'cpuThrottledPeriods', keyed(stat, 'nr_throttled'))
    const throttled =
      this.#cpu.version === 2 ? keyed(stat, 'throttled_usec') : keyed(stat, 'throttled_time')
    if (throttled !== undefined) {
      const perSecond = this.#cpu.version === 2 ? MICROSECONDS : NANOSECONDS
      values.cpuThrottledSeconds = throttled / perSecond
    }
  }
}

/**
 * @param {Values} values
 * @param {import('../protocol/frame').NumberField} field
 * @param {number | undefined} value
 */
function set (values, field, value) {
  if (value !== undefined && !Number.isNaN(value)) values[field] = value
}

module.exports = { Cgroup }

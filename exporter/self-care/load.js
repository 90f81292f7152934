'use strict'

const os = require('node:os')
const v8 = require('node:v8')
const { performance } = require('node:perf_hooks')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { isIll } = require('@memwatch/engine/verdicts/case')
const { semiSpaceMax, youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')

/**
 * Load shedding of an exporter with too much work or too little memory. The resolution of healthy
 * targets is reduced first. For targets with a suspected or confirmed finding, all frames are read
 * and evaluated at every level. All frames of the first targets of a pod are also read, so that
 * later targets cannot take their place.
 *
 * @typedef {object} Level
 * @property {string} gives description of the work that the exporter omits
 * @property {number} memoryRatio the level applies at this share of the memory limit, or of V8's
 * old generation
 * @property {number} loopRatio the level applies if the event loop is busy for this share of time
 * @property {number} evaluateSeconds least time between two evaluations of a healthy target
 * @property {number} frameOf one of this many frames of a healthy target is read
 * @property {number} historyBytes memory limit of packed histories
 * @property {boolean} newTargets true if new targets are accepted, and frames that are larger than
 *   the previous one
 */

const MIB = 2 ** 20

/** @type {readonly Level[]} */
const levels = Object.freeze([
  {
    gives: 'no overload',
    memoryRatio: 0,
    loopRatio: 0,
    evaluateSeconds: 2,
    frameOf: 1,
    historyBytes: 32 * MIB,
    newTargets: true
  },
  {
    gives:
      'it evaluates healthy targets every 20 s instead of every 2 to 15 s, and drops most of the ' +
        'history that is not on disk',
    memoryRatio: 0.8,
    loopRatio: 0.8,
    evaluateSeconds: 20,
    frameOf: 1,
    historyBytes: 8 * MIB,
    newTargets: true
  },
  {
    gives: 'it also skips four of five frames of healthy targets, and drops all history that is ' +
      'not on disk',
    memoryRatio: 0.88,
    loopRatio: 0.9,
    evaluateSeconds: 30,
    frameOf: 5,
    historyBytes: 0,
    newTargets: true
  },
  {
    gives: 'it also rejects new targets and large frames',
    memoryRatio: 0.95,
    loopRatio: 0.98,
    evaluateSeconds: 30,
    frameOf: 5,
    historyBytes: 0,
    newTargets: false
  }
])
/**
 * Distance below its threshold at which a level ends: shedding itself lowers the load, and levels
 * must not alternate.
 */
const LEAVE_RATIO = 0.05

/**
 * Memory limit of this process's container. Without a limit Node.js reports undefined, 0, or more
 * than the machine's memory.
 * @returns {number | undefined} bytes
 */
function memoryLimitBytes () {
  const limit = process.constrainedMemory()
  return limit && limit < os.totalmem() ? limit : undefined
}

/**
 * RSS of this process. libuv reads it from /proc, and throws if /proc is not mounted.
 * @returns {number | undefined} bytes
 */
function ownRssBytes () {
  try {
    return process.memoryUsage.rss()
  } catch {
    return undefined
  }
}

/**
 * V8 aborts when four collections in a row leave more than 0.8 of the old generation in use
 * (Heap::CheckIneffectiveMarkCompact). So the old generation counts as full below that share.
 */
const FULL_RATIO = 0.75
/** Size of the young generation without a flag: V8's default is three semi-spaces of 16 MiB. */
const DEFAULT_NEW_BYTES = 48 * MIB

/**
 * @returns {number} upper bound of this process's old generation in bytes; heap_size_limit also
 *   includes three semi-spaces
 */
function oldGenerationBytes () {
  const limitBytes = v8.getHeapStatistics().heap_size_limit
  const self = /** @type {import('@memwatch/agent/protocol/frame').Hello} */ ({
    threadId: 0,
    v8: process.versions.v8,
    execArgv: process.execArgv,
    nodeOptions: splitNodeOptions(process.env.NODE_OPTIONS ?? ''),
    hostMemoryBytes: os.totalmem(),
    constrainedBytes: memoryLimitBytes()
  })
  const semi = semiSpaceMax(self, limitBytes)
  return (
    limitBytes -
    (semi ? youngGenerationBytes(semi.bytes) : Math.min(DEFAULT_NEW_BYTES, limitBytes / 2))
  )
}

/** @returns {() => number} reads the used share of the old generation */
function heapReader () {
  const fullBytes = FULL_RATIO * oldGenerationBytes()
  return () => {
    let usedBytes = 0
    for (const { space_name: name, space_used_size: used } of v8.getHeapSpaceStatistics()) {
      if (name !== 'new_space' && name !== 'read_only_space') usedBytes += used
    }
    return usedBytes / fullBytes
  }
}

/**
 * @param {number} level current level
 * @param {{ memoryRatio: number, loopRatio: number }} load
 * @returns {number} new level: it rises at once, and falls by one at a time
 */
function nextLevel (level, { memoryRatio, loopRatio }) {
  const reaches = (/** @type {number} */ at, /** @type {number} */ by) => memoryRatio >= levels[at].memoryRatio - by || loopRatio >= levels[at].loopRatio - by
  for (let at = levels.length - 1; at > level; at--) if (reaches(at, 0)) return at
  return level > 0 && !reaches(level, LEAVE_RATIO) ? level - 1 : level
}

/**
 * A measurement that is late by this factor of its interval shows that the process was stopped
 * rather than busy.
 */
const HELD_UP = 1.5

/**
 * @param {number} everyMs interval of measurements
 * @returns {() => number} function that returns the busy share of the event loop since its last
 *   call
 */
function loopReader (everyMs) {
  let before = performance.eventLoopUtilization()
  let beforeMs = performance.now()
  return () => {
    const now = performance.eventLoopUtilization()
    const wasHeldUp = performance.now() - beforeMs > HELD_UP * everyMs
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    beforeMs = performance.now()
    // A process that is stopped in the middle of its work looks busy for that time.
    return wasHeldUp ? 0 : utilization
  }
}

/**
 * Received bytes after which memory is read again; once parsed, they take several times as much.
 */
const MEASURE_EVERY_BYTES = MIB

/**
 * @typedef {object} MemoryReading
 * @property {number | undefined} rssBytes
 * @property {number | undefined} limitBytes
 * @property {number} heapRatio
 */

/** Creates the reader of this process's memory. @returns {() => MemoryReading} */
function memoryReader () {
  const heapRatio = heapReader()
  return () => ({
    rssBytes: ownRssBytes(),
    limitBytes: memoryLimitBytes(),
    heapRatio: heapRatio()
  })
}

/** Interval at which the exporter measures its load, and removes old data. */
const MEASURE_EVERY_MS = 5000

/** Load of the exporter, measured regularly. */
class Load {
  level = 0
  #readMemory
  #readLoopRatio
  #unmeasuredBytes = 0

  /**
   * @param {object} [options]
   * @param {number} [options.everyMs] interval of measurements
   * @param {() => MemoryReading} [options.readMemory]
   * @param {() => number} [options.readLoopRatio]
   */
  constructor ({
    everyMs = Infinity,
    readMemory = memoryReader(),
    readLoopRatio = loopReader(everyMs)
  } = {}) {
    this.#readMemory = readMemory
    this.#readLoopRatio = readLoopRatio
  }

  /** Row of the present level. */
  get now () {
    return levels[this.level]
  }

  /** @returns {boolean} true if the level changed */
  measure () {
    return this.#enter(
      nextLevel(this.level, { memoryRatio: this.#memoryRatio(), loopRatio: this.#readLoopRatio() })
    )
  }

  /**
   * Counts received bytes. Memory may run out between two ticks of the timer, so it is also read
   * after each received MiB. This reading can only raise the level.
   * @param {number} bytes
   * @returns {boolean} true if the level changed
   */
  received (bytes) {
    this.#unmeasuredBytes += bytes
    if (this.#unmeasuredBytes < MEASURE_EVERY_BYTES) return false
    this.#unmeasuredBytes = 0
    return this.#enter(
      Math.max(
        this.level,
        nextLevel(this.level, { memoryRatio: this.#memoryRatio(), loopRatio: 0 })
      )
    )
  }

  #memoryRatio () {
    const { rssBytes, limitBytes, heapRatio } = this.#readMemory()
    return Math.max(heapRatio, limitBytes && rssBytes ? rssBytes / limitBytes : 0)
  }

  /** @param {number} level */
  #enter (level) {
    const before = this.level
    this.level = level
    return level !== before
  }

  /**
   * True if a frame of a target can be skipped.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {number} count number of its frames so far
   * @param {boolean} isLarger true if the frame is larger than the target's previous one
   */
  sheds (target, count, isLarger) {
    const { frameOf, newTargets } = this.now
    if (isLarger && !newTargets) return true
    return frameOf > 1 && count % frameOf !== 0 && !target.isSenior && !isIll(target)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {number} least seconds between two evaluations
   */
  evaluateSeconds (target) {
    return isIll(target) ? levels[0].evaluateSeconds : this.now.evaluateSeconds
  }
}

module.exports = {
  Load, MEASURE_EVERY_MS, levels, loopReader, nextLevel, memoryLimitBytes, ownRssBytes
}

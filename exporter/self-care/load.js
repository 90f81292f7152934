'use strict'

const os = require('node:os')
const v8 = require('node:v8')
const { performance } = require('node:perf_hooks')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { semiSpaceMax, youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')

/**
 * Load shedding of an exporter with too much work or too little memory. Resolution of healthy
 * targets goes first. Targets with a suspected or confirmed finding keep all frames and evaluations
 * at every level. The exporter reads all frames of the first targets of a pod, so that floods of
 * others cost them none.
 *
 * @typedef {object} Level
 * @property {string} gives the work that the exporter gives up, in words
 * @property {number} memoryRatio share of the memory limit, or of V8's old generation, from which
 *   the level applies
 * @property {number} loopRatio share of time with a busy event loop from which the level applies
 * @property {number} evaluateSeconds between two evaluations of a healthy target
 * @property {number} frameOf one frame in this many of a healthy target is read
 * @property {number} historyBytes memory limit of packed histories
 * @property {boolean} newTargets whether new targets are accepted, and frames larger than the
 *   previous one
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
      'it evaluates healthy targets every 10 s instead of every 2 s, and drops most of the ' +
        'history that is not on disk',
    memoryRatio: 0.8,
    loopRatio: 0.8,
    evaluateSeconds: 10,
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
/** Distance below the threshold at which a level ends, because shedding itself lowers the load. */
const LEAVE_RATIO = 0.05

/**
 * Without a limit Node.js reports undefined, 0, or more than the machine has.
 * @returns {number | undefined} of this process' container
 */
function memoryLimitBytes () {
  const limit = process.constrainedMemory()
  return limit && limit < os.totalmem() ? limit : undefined
}

/**
 * libuv reads RSS from /proc, and throws where nothing is mounted there.
 * @returns {number | undefined} of this process
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
 * (Heap::CheckIneffectiveMarkCompact): the old generation counts as full some way before.
 */
const FULL_RATIO = 0.75
/**
 * Without a flag: V8's largest new space by default is three semi-spaces of 16 MiB.
 */
const DEFAULT_NEW_BYTES = 48 * MIB

/**
 * @returns {number} most bytes of this process' old generation: heap_size_limit counts three
 *   semi-spaces as well
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

/** @returns {() => number} share of the old generation in use */
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
 * @returns {number} new level: rises at once, falls by one at a time
 */
function nextLevel (level, { memoryRatio, loopRatio }) {
  const reaches = (/** @type {number} */ at, /** @type {number} */ by) => memoryRatio >= levels[at].memoryRatio - by || loopRatio >= levels[at].loopRatio - by
  for (let at = levels.length - 1; at > level; at--) if (reaches(at, 0)) return at
  return level > 0 && !reaches(level, LEAVE_RATIO) ? level - 1 : level
}

/** Delay of a measurement that shows a stopped process, not a busy one. */
const HELD_UP = 1.5

/**
 * @param {number} everyMs interval of measurements
 * @returns {() => number} share of time since the last call in which the event loop was busy
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
    // A process stopped in the middle of work looks busy for that time.
    return wasHeldUp ? 0 : utilization
  }
}

/** Bytes received between two readings of memory; parsed they take several times that. */
const MEASURE_EVERY_BYTES = MIB

/**
 * @typedef {object} MemoryReading
 * @property {number | undefined} rssBytes
 * @property {number | undefined} limitBytes
 * @property {number} heapRatio
 */

/** Readings of this process. @returns {() => MemoryReading} */
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

  /** Measures in force. */
  get now () {
    return levels[this.level]
  }

  /** @returns {boolean} true: the level changed */
  measure () {
    return this.#enter(
      nextLevel(this.level, { memoryRatio: this.#memoryRatio(), loopRatio: this.#readLoopRatio() })
    )
  }

  /**
   * Counts received bytes. Memory can run out between two ticks of a timer, so it is also read
   * after every MiB; that only raises the level.
   * @param {number} bytes
   * @returns {boolean} true: the level changed
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
   * True when a frame of a target can be dropped.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {number} count of its frames so far
   * @param {boolean} isLarger than the target's previous frame
   */
  sheds (target, count, isLarger) {
    const { frameOf, newTargets } = this.now
    if (isLarger && !newTargets) return true
    return frameOf > 1 && count % frameOf !== 0 && !target.isSenior && !isIll(target)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {number} seconds between two evaluations
   */
  evaluateSeconds (target) {
    return isIll(target) ? levels[0].evaluateSeconds : this.now.evaluateSeconds
  }
}

/**
 * True if there is no problem: an opportunity is none.
 * @param {import('@memwatch/engine/history/target').Target} target
 */
const isIll = target => findCase(target).verdicts.some(({ state, opportunity }) =>
  !opportunity && (state === 'suspected' || state === 'confirmed'))

module.exports = {
  Load, MEASURE_EVERY_MS, levels, loopReader, nextLevel, memoryLimitBytes, ownRssBytes
}

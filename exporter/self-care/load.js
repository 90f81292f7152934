'use strict'

const os = require('node:os')
const { performance } = require('node:perf_hooks')

/**
 * What the exporter does without when it has too much to do or too little memory: resolution first, and of those that nothing is wrong
 * with. Targets with a suspected or confirmed finding are read and judged as ever, on every level.
 *
 * @typedef {object} Level
 * @property {string} gives what is given up, for a person
 * @property {number} memoryRatio of the memory limit from which on it is
 * @property {number} loopRatio of the time that its event loop is busy
 * @property {number} evaluateSeconds between two evaluations of a healthy target
 * @property {number} frameOf so many frames of a healthy target one is taken
 * @property {number} historyBytes most that packed histories may hold in memory
 * @property {boolean} newTargets whether any are taken
 */

const MIB = 2 ** 20

/** @type {readonly Level[]} */
const levels = Object.freeze([
  { gives: 'nothing', memoryRatio: 0, loopRatio: 0, evaluateSeconds: 2, frameOf: 1, historyBytes: 32 * MIB, newTargets: true },
  { gives: 'judging healthy targets every 10 s instead of 2, and most of the history that is not on disk', memoryRatio: 0.8, loopRatio: 0.8, evaluateSeconds: 10, frameOf: 1, historyBytes: 8 * MIB, newTargets: true },
  { gives: 'four of five frames of healthy targets as well, and all history that is not on disk', memoryRatio: 0.88, loopRatio: 0.9, evaluateSeconds: 30, frameOf: 5, historyBytes: 0, newTargets: true },
  { gives: 'new targets as well', memoryRatio: 0.95, loopRatio: 0.98, evaluateSeconds: 30, frameOf: 5, historyBytes: 0, newTargets: false }
])
/** So far below what raised it load must fall before a level is left: shedding itself lowers it. */
const LEAVE_RATIO = 0.05

/** Without a limit Node says undefined, 0, or more than there is. @returns {number | undefined} of this process' container */
function memoryLimitBytes () {
  const limit = process.constrainedMemory()
  return limit && limit < os.totalmem() ? limit : undefined
}

/**
 * @param {number} level that it is on
 * @param {{ memoryRatio: number, loopRatio: number }} load
 * @returns {number} level that it should be on: up at once, down one at a time
 */
function nextLevel (level, { memoryRatio, loopRatio }) {
  const reaches = (/** @type {number} */ at, /** @type {number} */ by) => memoryRatio >= levels[at].memoryRatio - by || loopRatio >= levels[at].loopRatio - by
  for (let at = levels.length - 1; at > level; at--) if (reaches(at, 0)) return at
  return level > 0 && !reaches(level, LEAVE_RATIO) ? level - 1 : level
}

/** It was measured so much later than it should have been: it was stopped, not busy. */
const HELD_UP = 1.5

/** @param {number} everyMs how often it is asked @returns {() => number} of the time since it was asked last, the share that the event loop was busy */
function loopReader (everyMs) {
  let before = performance.eventLoopUtilization()
  let beforeMs = performance.now()
  return () => {
    const now = performance.eventLoopUtilization()
    const wasHeldUp = performance.now() - beforeMs > HELD_UP * everyMs
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    beforeMs = performance.now()
    // A process that is stopped in the middle of something looks busy all the while.
    return wasHeldUp ? 0 : utilization
  }
}

/** Of this process. @param {number} everyMs how often it is asked */
function reader (everyMs) {
  const loopRatio = loopReader(everyMs)
  return () => ({ rssBytes: process.memoryUsage.rss(), limitBytes: memoryLimitBytes(), loopRatio: loopRatio() })
}

/** How much the exporter has to do, measured now and then. */
class Load {
  level = 0
  #read

  /** @param {{ everyMs?: number, read?: () => { rssBytes: number, limitBytes: number | undefined, loopRatio: number } }} [options] everyMs: how often it is measured */
  constructor ({ everyMs = Infinity, read = reader(everyMs) } = {}) {
    this.#read = read
  }

  /** What is in force. */
  get now () {
    return levels[this.level]
  }

  /** @returns {boolean} whether the level changed */
  measure () {
    const { rssBytes, limitBytes, loopRatio } = this.#read()
    const before = this.level
    this.level = nextLevel(before, { memoryRatio: limitBytes ? rssBytes / limitBytes : 0, loopRatio })
    return this.level !== before
  }

  /**
   * Whether a frame of a target can be done without.
   * @param {import('../series/target').Target} target @param {number} count of its frames so far
   */
  sheds (target, count) {
    const { frameOf } = this.now
    return frameOf > 1 && count % frameOf !== 0 && !isIll(target)
  }

  /** @param {import('../series/target').Target} target @returns {number} seconds between two evaluations */
  evaluateSeconds (target) {
    return isIll(target) ? levels[0].evaluateSeconds : this.now.evaluateSeconds
  }
}

/** Of an opportunity nothing is wrong. @param {import('../series/target').Target} target */
const isIll = ({ verdicts }) => verdicts.some(({ state, opportunity }) => !opportunity && (state === 'suspected' || state === 'confirmed'))

module.exports = { Load, levels, loopReader, nextLevel, memoryLimitBytes }

'use strict'

const { growthOf } = require('./growth')

/** Mann–Kendall score from which the neighbours' growth is no accident: see growth.js. */
const CERTAIN_SCORE = 3

/**
 * @param {import('../history/window').Window} window
 * @returns {number} bytes per second
 */
function neighboursGrowth (window) {
  const { trend } = growthOf(window, 'neighboursBytes')
  return trend && trend.z >= CERTAIN_SCORE ? Math.max(0, trend.slope) : 0
}

/**
 * This process's part of the room that is left in its container. Neighbours that grow take theirs:
 * five processes that leak alike have a fifth each, and one that leaks alone has all of it.
 *
 * @param {import('../history/window').Window} window
 * @param {number | undefined} growthBytesPerSecond of this process
 * @returns {number} ratio, 1 without neighbours that grow
 */
function partOfRoom (window, growthBytesPerSecond = 0) {
  if (window.neighbours.processes === 0 || growthBytesPerSecond <= 0) return 1
  return growthBytesPerSecond / (growthBytesPerSecond + neighboursGrowth(window))
}

/**
 * What of the container's limit is this process's: in proportion to what each holds now, file pages
 * aside. The parts of all processes add up to the limit.
 *
 * @param {import('../history/window').Window} window
 * @returns {number | null} bytes; null without a limit
 */
function shareOfLimit ({ values, neighbours }) {
  const { containerLimitBytes, rssBytes = 0, rssAnonBytes = rssBytes } = values
  if (containerLimitBytes === undefined) return null
  if (neighbours.processes === 0 || rssAnonBytes === 0) return containerLimitBytes
  const filesBytes = Math.max(0, Math.min(rssBytes - rssAnonBytes, containerLimitBytes))
  const part = rssAnonBytes / (rssAnonBytes + neighbours.memoryBytes)
  return filesBytes + (containerLimitBytes - filesBytes) * part
}

module.exports = { partOfRoom, shareOfLimit }

'use strict'

const { growthOf } = require('./growth')

/** Mann–Kendall score of significant growth of the neighbours: see growth.js. */
const CERTAIN_SCORE = 3

const growth = growthOf('neighboursBytes')

/**
 * @param {import('../history/window').Window} window
 * @returns {number} bytes per second
 */
function neighboursGrowth (window) {
  const { trend } = growth(window)
  return trend && trend.z >= CERTAIN_SCORE ? Math.max(0, trend.slope) : 0
}

/**
 * This process's share of the room left in its container. Neighbours that grow also use the room:
 * each of five processes with equal leaks has a fifth of it, and a process that leaks alone has all
 * of it.
 *
 * @param {import('../history/window').Window} window
 * @param {number | undefined} growthBytesPerSecond growth of this process
 * @returns {number} ratio, 1 without neighbours that grow
 */
function partOfRoom (window, growthBytesPerSecond = 0) {
  if (window.neighbours.processes === 0 || growthBytesPerSecond <= 0) return 1
  return growthBytesPerSecond / (growthBytesPerSecond + neighboursGrowth(window))
}

/**
 * This process's part of the container's limit, in proportion to the present memory of each
 * process, without file pages. The shares of all processes add up to the limit.
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

module.exports = { neighboursGrowth, partOfRoom, shareOfLimit }

'use strict'

/** Limits of the time left to act. */
const URGENCY_LIMITS = Object.freeze({
  // If less than one working day is left, somebody must act at once; a longer time is worth a
  // ticket.
  criticalSeconds: 8 * 3600,
  // A time beyond the next deployment is only information, as a deployment restarts the process.
  infoSeconds: 30 * 86_400
})

/**
 * Severity of growth towards a limit, by the time left to act.
 * @param {number | null} secondsLeft at the present rate; null if no limit is known
 * @param {typeof URGENCY_LIMITS} limits
 * @returns {import('./define-diagnosis').Severity}
 */
function severityByTime (secondsLeft, { criticalSeconds, infoSeconds }) {
  if (secondsLeft === null) return 'warning'
  if (secondsLeft < criticalSeconds) return 'critical'
  return secondsLeft < infoSeconds ? 'warning' : 'info'
}

/** Limits of harmless waste. */
const ROOM_LIMITS = Object.freeze({
  // Waste is harmless while two thirds of the limit are free, unless the waste is a fifth of the
  // limit.
  limitShareRatio: 0.2,
  usedShareRatio: 1 / 3
})

/**
 * Memory that a process may use, in bytes. Processes in one container share its limit.
 * @param {Record<'containerShareBytes' | 'memoryRunwayBytes', number | null> &
 *   { rssBytes: number }} signals
 */
const findMemoryLimit = ({ rssBytes, containerShareBytes, memoryRunwayBytes }) =>
  containerShareBytes ?? rssBytes + (memoryRunwayBytes ?? 0)

/** Name of the limit that the processes of a container share. */
const CONTAINER_LIMIT = 'the container limit'

/** @param {{ containerLimitBytes: number | null }} signals */
const nameMemoryLimit = ({ containerLimitBytes }) =>
  containerLimitBytes === null ? "the machine's memory" : CONTAINER_LIMIT

/**
 * True for harmless waste.
 * @param {Parameters<typeof findMemoryLimit>[0]} signals
 * @param {number} wastedBytes
 * @param {typeof ROOM_LIMITS} limits
 */
function hasRoom (signals, wastedBytes, { limitShareRatio, usedShareRatio }) {
  const limit = findMemoryLimit(signals)
  return wastedBytes < limitShareRatio * limit && signals.rssBytes < usedShareRatio * limit
}

module.exports = {
  CONTAINER_LIMIT, ROOM_LIMITS, URGENCY_LIMITS, findMemoryLimit, hasRoom, nameMemoryLimit,
  severityByTime
}

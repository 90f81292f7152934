'use strict'

/** Limits of the time that is left to act. */
const URGENCY_LIMITS = Object.freeze({
  // Within a working day somebody must act at once; what takes longer is a ticket, ...
  criticalSeconds: 8 * 3600,
  // ... and what the next deployment restarts anyway is worth knowing.
  infoSeconds: 30 * 86_400
})

/**
 * Severity of growth towards a limit: the time that is left to act.
 * @param {number | null} secondsLeft at the present rate; null where no limit is known
 * @param {typeof URGENCY_LIMITS} limits
 * @returns {import('./define-diagnosis').Severity}
 */
function severityByTime (secondsLeft, { criticalSeconds, infoSeconds }) {
  if (secondsLeft === null) return 'warning'
  if (secondsLeft < criticalSeconds) return 'critical'
  return secondsLeft < infoSeconds ? 'warning' : 'info'
}

/** Limits of waste that there is room for. */
const ROOM_LIMITS = Object.freeze({
  // Memory that is two thirds empty has room for waste, unless that is a fifth of the limit: then
  // it is no danger.
  limitShareRatio: 0.2,
  usedShareRatio: 1 / 3
})

/**
 * Bytes that a process may use: processes that share a container have their part of its room.
 * @param {Record<'containerShareBytes' | 'memoryRunwayBytes', number | null> &
 *   { rssBytes: number }} signals
 */
const findMemoryLimit = ({ rssBytes, containerShareBytes, memoryRunwayBytes }) =>
  containerShareBytes ?? rssBytes + (memoryRunwayBytes ?? 0)

/**
 * Whether what is wasted endangers nobody.
 * @param {Parameters<typeof findMemoryLimit>[0]} signals
 * @param {number} wastedBytes
 * @param {typeof ROOM_LIMITS} limits
 */
function hasRoom (signals, wastedBytes, { limitShareRatio, usedShareRatio }) {
  const limit = findMemoryLimit(signals)
  return wastedBytes < limitShareRatio * limit && signals.rssBytes < usedShareRatio * limit
}

module.exports = { ROOM_LIMITS, URGENCY_LIMITS, findMemoryLimit, hasRoom, severityByTime }

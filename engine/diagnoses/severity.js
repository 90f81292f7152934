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

module.exports = { URGENCY_LIMITS, severityByTime }

'use strict'

/**
 * Severity of growth towards a limit: the time that is left to act.
 * @param {number | null} secondsLeft at the present rate; null where no limit is known
 * @param {{ criticalSeconds: number, infoSeconds: number }} limits
 * @returns {import('./define-diagnosis').Severity}
 */
function severityByTime (secondsLeft, { criticalSeconds, infoSeconds }) {
  if (secondsLeft === null) return 'warning'
  if (secondsLeft < criticalSeconds) return 'critical'
  return secondsLeft < infoSeconds ? 'warning' : 'info'
}

module.exports = { severityByTime }

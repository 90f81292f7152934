'use strict'

/**
 * Opens a session of a target, and fails if it is refused.
 * @param {import('../../engine/history/targets').Targets} targets
 * @param {Parameters<import('../../engine/history/targets').Targets['open']>} hello and a function
 *   that sends
 */
function openSession (targets, ...hello) {
  const session = targets.open(...hello)
  if (typeof session === 'string') throw new Error(`refused: ${session}`)
  return session
}

module.exports = { openSession }

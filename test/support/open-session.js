'use strict'

/**
 * A session of a target that is not refused.
 * @param {import('../../engine/history/targets').Targets} targets
 * @param {Parameters<import('../../engine/history/targets').Targets['open']>} hello and how to send
 */
function openSession (targets, ...hello) {
  const session = targets.open(...hello)
  if (typeof session === 'string') throw new Error(`refused: ${session}`)
  return session
}

module.exports = { openSession }

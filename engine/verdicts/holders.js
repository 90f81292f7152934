'use strict'

/** @typedef {import('../text/suspect-text').Pile} Pile */

/**
 * Piles of alike objects in a heap snapshot of a target, and their holders.
 * @typedef {object} Holders
 * @property {string | null} captureId id of the snapshot's capture; null for a snapshot that V8
 *   wrote by itself
 * @property {string | null} file file that V8 wrote; null for a capture
 * @property {number} atUnixMs time of the snapshot
 * @property {number | null} sinceUnixMs time of an earlier snapshot, since which the objects in the
 *   piles were created; null without an earlier snapshot
 * @property {string | null} refused reason why the snapshot was not analysed; null if it was
 * @property {Pile[]} piles largest first
 */

/** Upper bound of piles attached to one verdict, because people read them. */
const MOST_PILES = 3
/** A pile with this share of its bytes in Buffers counts as a pile of Buffers. */
const BUFFER_SHARE = 0.5

/**
 * Tells which piles belong to a diagnosis, by the kind of objects that it is about.
 * @type {Readonly<Record<NonNullable<import('../diagnoses/define-diagnosis').Diagnosis['holds']>,
 *   (pile: Pile, holders: Holders) => boolean>>}
 */
const IS_ABOUT = Object.freeze({
  objects: () => true,
  buffers: ({ bufferBytes = 0, retainedBytes }) => bufferBytes >= BUFFER_SHARE * retainedBytes,
  // Handles are small, so the largest piles of a single snapshot do not show them.
  handles: (_, { sinceUnixMs }) => sinceUnixMs !== null
})

/**
 * @param {Pick<import('./evaluate').Verdict, 'diagnosis' | 'state'>} verdict
 * @param {Holders | null} holders holders of its target
 * @returns {Holders | null} holders with only the piles that belong to the diagnosis; null without
 *   any
 */
function selectHolders ({ diagnosis, state }, holders) {
  if (!holders || (state !== 'suspected' && state !== 'confirmed')) return null
  // The diagnoses are loaded for the first finding: an exporter starts without them.
  const { diagnoses } = require('../diagnoses')
  const holds = diagnoses.find(({ id }) => id === diagnosis)?.holds
  if (!holds) return null
  const piles = holders.piles.filter(pile => IS_ABOUT[holds](pile, holders)).slice(0, MOST_PILES)
  return piles.length === 0 ? null : { ...holders, piles }
}

module.exports = { selectHolders, MOST_PILES }

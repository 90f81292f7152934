'use strict'

const { diagnoses } = require('../diagnoses')

/** @typedef {import('../text/suspect-text').Pile} Pile */

/**
 * Piles of alike objects in a heap snapshot of a target, and their holders.
 * @typedef {object} Holders
 * @property {string | null} captureId of the snapshot; null of one that V8 wrote by itself
 * @property {string | null} file that V8 wrote; null of a capture
 * @property {number} atUnixMs time of the snapshot
 * @property {number | null} sinceUnixMs time of an earlier snapshot: the piles are objects that
 *   came since; null: there was none
 * @property {string | null} refused reason why it was not analysed; null if it was
 * @property {Pile[]} piles largest first
 */

/** Piles of one verdict: people read them. */
const MOST_PILES = 3
/** Share of a pile in Buffers from which on it is one of Buffers. */
const BUFFER_SHARE = 0.5

/**
 * Piles that a diagnosis is about.
 * @type {Readonly<Record<NonNullable<import('../diagnoses/define-diagnosis').Diagnosis['holds']>,
 *   (pile: Pile, holders: Holders) => boolean>>}
 */
const IS_ABOUT = Object.freeze({
  objects: () => true,
  buffers: ({ bufferBytes = 0, retainedBytes }) => bufferBytes >= BUFFER_SHARE * retainedBytes,
  // Handles are small: of one snapshot the largest pile says nothing of them.
  handles: (_, { sinceUnixMs }) => sinceUnixMs !== null
})

const held = new Map(diagnoses.map(({ id, holds }) => [id, holds]))

/**
 * @param {Pick<import('./evaluate').Verdict, 'diagnosis' | 'state'>} verdict
 * @param {Holders | null} holders of its target
 * @returns {Holders | null} those that its diagnosis is about; null without any
 */
function selectHolders ({ diagnosis, state }, holders) {
  const holds = held.get(diagnosis)
  if (!holders || !holds || (state !== 'suspected' && state !== 'confirmed')) return null
  const piles = holders.piles.filter(pile => IS_ABOUT[holds](pile, holders)).slice(0, MOST_PILES)
  return piles.length === 0 ? null : { ...holders, piles }
}

module.exports = { selectHolders, MOST_PILES }

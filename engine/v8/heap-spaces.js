'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')

/** @typedef {import('@memwatch/agent/protocol/frame').SpaceRow} SpaceRow */

/**
 * Used bytes of all spaces except the new ones: the live heap, right after a major GC.
 * @param {Record<string, SpaceRow>} spaces by name
 */
function oldUsedBytes (spaces) {
  let bytes = 0
  for (const name in spaces) {
    if (!name.startsWith('new_')) bytes += spaces[name][SPACE_ROW.usedBytes]
  }
  return bytes
}

/**
 * Capacity of one semi-space: used and available of the new space, measured on V8 10.2 to 14.6.
 * @param {Record<string, SpaceRow>} [spaces] by name
 * @returns {number | undefined} undefined without a new space
 */
function semiSpaceCapacity (spaces) {
  const row = spaces?.new_space
  return row && row[SPACE_ROW.usedBytes] + row[SPACE_ROW.availableBytes]
}

module.exports = { oldUsedBytes, semiSpaceCapacity }

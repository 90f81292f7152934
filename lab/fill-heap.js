'use strict'

const v8 = require('node:v8')

/**
 * Fills a share of a heap limit with objects, like the data of an app that has outgrown its heap.
 * @param {number} share 0–1 of the limit
 * @param {number} limit bytes
 * @returns {object[]} objects, to be retained by the caller
 */
function fillHeap (share, limit) {
  /** @type {object[]} */
  const rows = []
  while (oldBytes() < share * limit) {
    for (let i = 0; i < 2000; i++) {
      rows.push({
        id: rows.length,
        name: `product ${rows.length}`,
        prices: [rows.length % 100, rows.length % 70],
        stock: { shop: rows.length % 9, store: rows.length % 5 }
      })
    }
  }
  return rows
}

function oldBytes () {
  return v8
    .getHeapSpaceStatistics()
    .filter(({ space_name: name }) => !name.startsWith('new_'))
    .reduce((sum, space) => sum + space.space_used_size, 0)
}

module.exports = { fillHeap }

'use strict'

/**
 * Finds a row by binary search, because rows are sorted by time.
 * @param {{ length: number, timeAt: (i: number) => number }} rows the oldest first
 * @param {number} time
 * @returns {number} index of the oldest row at or after this time; length if there is none
 */
function firstSince (rows, time) {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (rows.timeAt(middle) < time) low = middle + 1
    else high = middle
  }
  return low
}

module.exports = { firstSince }

'use strict'

/**
 * Binary search, because rows are in the order of their times.
 * @param {{ length: number, timeAt: (i: number) => number }} rows 0 is the oldest
 * @param {number} time
 * @returns {number} the oldest row not before that time; length when there is none
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

'use strict'

/** Buffer in which values are reordered. It is reused, because trends are many and short. */
let room = new Float64Array(1024)

/**
 * @param {number} length
 * @returns {Float64Array} buffer of at least this length, with stale content
 */
function roomFor (length) {
  if (room.length < length) room = new Float64Array(2 * length)
  return room
}

/**
 * Hoare's selection, in place. Afterwards the value at k is the k-th smallest; values before it are
 * not greater, values after it not smaller. Comm. ACM 4 (1961) 321.
 * @param {Float64Array} values
 * @param {number} length number of values
 * @param {number} k index, from 0
 */
function select (values, length, k) {
  let left = 0
  let right = length - 1
  while (left < right) {
    const pivot = values[(left + right) >> 1]
    let i = left
    let j = right
    while (i <= j) {
      while (values[i] < pivot) i++
      while (values[j] > pivot) j--
      if (i > j) break
      const value = values[i]
      values[i++] = values[j]
      values[j--] = value
    }
    if (k <= j) right = j
    else if (k >= i) left = i
    else return
  }
}

/**
 * @param {Float64Array} values values; this function reorders them
 * @param {number} length number of values, at least 1
 * @param {number} share 0–1
 * @returns {number}
 */
function quantileInPlace (values, length, share) {
  const at = (length - 1) * share
  const k = Math.floor(at)
  select(values, length, k)
  const low = values[k]
  if (k === at) return low
  let high = values[k + 1]
  for (let i = k + 2; i < length; i++) if (values[i] < high) high = values[i]
  return low + (at - k) * (high - low)
}

/**
 * Quantile by linear interpolation between the two nearest values: R's type 7.
 * @param {ArrayLike<number>} values at least one; not modified
 * @param {number} share 0–1
 */
function quantile (values, share) {
  const copy = roomFor(values.length)
  for (let i = 0; i < values.length; i++) copy[i] = values[i]
  return quantileInPlace(copy, values.length, share)
}

/** @param {ArrayLike<number>} values at least one */
const median = values => quantile(values, 0.5)

module.exports = { median, quantile, quantileInPlace, roomFor }

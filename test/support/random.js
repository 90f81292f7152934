'use strict'

/**
 * Random numbers that are the same in each run: mulberry32.
 * @param {number} seed
 */
function seeded (seed) {
  let state = seed >>> 0
  const uniform = () => {
    state = (state + 0x6D2B79F5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** Box–Muller transform. */
  const normal = () =>
    Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
  return { uniform, normal }
}

module.exports = { seeded }

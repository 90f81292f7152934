'use strict'

/**
 * A cache that fills grows as straight as a leak until it meets its bound. These limits tell them
 * apart; the live heap and the memory outside it share them.
 */
const FILLING_LIMITS = Object.freeze({
  // Sure enough when so much of the way from where it began to the limit was seen as a straight
  // line, ...
  runwayShareRatio: 0.35,
  // ... once caches have had their time: those of 50 to 400 MiB were seen to fill for up to ten
  // minutes.
  fillingSeconds: 600,
  // Within them growth must be seen for most of the way: a cache is made to stay below the limit.
  fillingRunwayShareRatio: 0.8,
  // Straight growth of this size is certain, however far the limit is: those caches stay below it.
  // Without a container limit a quarter of the way was 6 GiB of a machine's 24 GiB.
  certainRiseBytes: 512 * 2 ** 20
})

/** Ends the sentence that tells of growth which is not certain to be a leak. */
const MAY_FILL = 'a leak, or a cache that still fills'

/** @typedef {typeof FILLING_LIMITS} FillingLimits */

/**
 * The rise along a line that makes a leak certain.
 * @param {FillingLimits} limits
 * @param {Record<'rise' | 'runway' | 'seconds', number>} line rise and runway: bytes
 * @param {boolean} holdsCaches whether caches live where it grows
 * @returns {number} bytes
 */
function findCertainBytes (limits, { rise, runway, seconds }, holdsCaches) {
  const share = holdsCaches && seconds < limits.fillingSeconds
    ? limits.fillingRunwayShareRatio
    : limits.runwayShareRatio
  return Math.min(share * (rise + runway), limits.certainRiseBytes)
}

module.exports = { FILLING_LIMITS, MAY_FILL, findCertainBytes }

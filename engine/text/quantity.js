'use strict'

/** Bytes of each unit, as in Kubernetes, or with a final B. */
const SUFFIXES = Object.freeze({
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40
})

/**
 * Range of plausible memory limits. A smaller number probably lacks its unit, and no machine has
 * more.
 */
const LEAST_BYTES = 2 ** 20
const MOST_BYTES = 1024 * 2 ** 40

/** @param {string} text */
const numberIn = text => /^(\d{1,16}(?:\.\d{1,16})?)([a-zA-Z]*)$/.exec(text)

/**
 * Parses an amount of memory in Kubernetes' notation, or with a final B as in MiB.
 * @param {string} text as in 512Mi, 1.5GiB, 512M, 536870912
 * @returns {number} whole bytes
 * @throws {RangeError} with a sentence that says what is expected
 */
function readMemory (text) {
  const [, digits, suffix] = numberIn(text.trim()) ?? []
  const factor = Object.hasOwn(SUFFIXES, suffix ?? '-') ? SUFFIXES[/** @type {keyof typeof SUFFIXES} */ (suffix)] : undefined
  const bytes = factor === undefined ? NaN : Math.floor(Number(digits) * factor)
  if (bytes >= LEAST_BYTES && bytes <= MOST_BYTES) return bytes
  const expected = 'expected an amount of memory such as 512Mi, 1Gi, 512M or 536870912'
  const got = `got ${JSON.stringify(text)}`
  if (suffix === 'm') {
    throw new RangeError(
      `${expected}, ${got}: m is a thousandth in Kubernetes and a MiB in Docker; write ${digits}Mi`
    )
  }
  if (suffix === '' && bytes < LEAST_BYTES) {
    throw new RangeError(`${expected}, ${got}: a number without a unit is bytes; write ${digits}Mi`)
  }
  throw new RangeError(
    bytes >= 0 ? `${expected}, from 1Mi to 1024Ti, ${got}` : `${expected}, ${got}`
  )
}

module.exports = { readMemory }

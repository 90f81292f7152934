'use strict'

/**
 * Rules for texts that strangers send. A plain text is safe wherever it is shown: it cannot steer a
 * terminal, reorder a line, or make an encoder throw.
 */

/**
 * C0 and C1 control characters and DEL, line and paragraph separators, bidirectional controls.
 * https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
 */
const FORBIDDEN = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
const HAS_FORBIDDEN = new RegExp(`[${FORBIDDEN}]`)
const ALL_FORBIDDEN = new RegExp(`[${FORBIDDEN}]`, 'g')
const REPLACEMENT = '\ufffd'

/** @param {string} text */
const isPlain = text => !HAS_FORBIDDEN.test(text) && text.isWellFormed()

/** @param {string} text @returns {string} with U+FFFD in place of what a plain text may not hold */
const plainText = text => isPlain(text) ? text : text.toWellFormed().replace(ALL_FORBIDDEN, REPLACEMENT)

/**
 * @template T
 * @param {T} value of JSON, or what a reader made of a file
 * @returns {T} a copy in which every string is plain, and every key
 */
function plainTexts (value) {
  if (typeof value === 'string') return /** @type {T} */ (plainText(value))
  if (Array.isArray(value)) return /** @type {T} */ (value.map(plainTexts))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [plainText(key), plainTexts(item)])
  return /** @type {T} */ (Object.fromEntries(entries))
}

module.exports = { isPlain, plainText, plainTexts }

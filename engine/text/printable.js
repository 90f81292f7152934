'use strict'

/**
 * Characters that a terminal executes or that change how the rest of a line reads: control
 * characters (C0, DEL, C1), format characters (bidi, zero width, tags), line and paragraph
 * separators, lone surrogates.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const SHORT = /** @type {Record<string, string>} */ ({ '\n': '\\n', '\r': '\\r', '\t': '\\t' })

/**
 * One line of text that is safe on a terminal: \x1b, \u202e, \n in place of the characters
 * themselves.
 * @param {string} text untrusted text
 * @returns {string} the same when applied twice
 */
const printable = text => text.replace(UNPRINTABLE, escaped)

/** @param {string} character */
function escaped (character) {
  const code = /** @type {number} */ (character.codePointAt(0)).toString(16)
  return (
    SHORT[character] ??
    (code.length <= 2
      ? `\\x${code.padStart(2, '0')}`
      : code.length <= 4
        ? `\\u${code.padStart(4, '0')}`
        : `\\u{${code}}`)
  )
}

module.exports = { printable }

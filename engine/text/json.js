'use strict'

/**
 * Characters that are valid in JSON but unsafe on a terminal: DEL, C1, format characters,
 * separators.
 */
const UNPRINTABLE = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu
const LONE_SURROGATE = /\p{Cs}/gu

/** Text that UTF-8 can hold: U+FFFD in place of lone surrogates. @param {string} text */
const wellFormed = text => text.replace(LONE_SURROGATE, '\ufffd')

/**
 * Replacer for JSON.stringify.
 * @param {unknown} _
 * @param {unknown} value
 */
const replacer = (_, value) => (typeof value === 'string' ? wellFormed(value) : value)

/**
 * JSON that every parser accepts and that is safe on a terminal.
 * @param {unknown} value
 * @param {number} [indent]
 * @returns {string}
 */
const toJson = (value, indent) =>
  JSON.stringify(value, replacer, indent).replace(UNPRINTABLE, character =>
    character
      .split('')
      .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  )

module.exports = { toJson, replacer, wellFormed, UNPRINTABLE }

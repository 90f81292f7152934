'use strict'

const { printable } = require('./printable')

/** @param {string} character */
const entity = character => `&#${character.codePointAt(0)};`

/**
 * Text for a paragraph or a table cell: every character loses its meaning as markup.
 * @param {string} text untrusted text
 * @returns {string}
 */
const markdownText = text => printable(text).replace(/[\\`*_[\]<>|&~@]/g, entity)

/**
 * Untrusted text as code. A code span cannot contain every text: a backtick ends it, and a | ends
 * the cell. An HTML element can contain every character as an entity.
 *
 * @param {string} text untrusted text
 * @returns {string}
 */
function markdownCode (text) {
  const shown = printable(text)
  return shown.trim() === shown && /^[^`|<&]+$/.test(shown)
    ? `\`${shown}\``
    : `<code>${shown.replace(/[^\p{L}\p{M}\p{N}]/gu, entity)}</code>`
}

module.exports = { markdownText, markdownCode }

'use strict'

const { printable } = require('./printable')

/** @param {string} character */
const entity = character => `&#${character.codePointAt(0)};`

/**
 * Text in a paragraph or a cell of a table: no character of it is markup.
 * @param {string} text that anybody may have written
 * @returns {string}
 */
const markdownText = text => printable(text).replace(/[\\`*_[\]<>|&~@]/g, entity)

/**
 * The same as code. A code span cannot hold every text: a backtick ends it, and a | the cell. In an
 * element of HTML every character can stand as an entity.
 *
 * @param {string} text that anybody may have written
 * @returns {string}
 */
function markdownCode (text) {
  const shown = printable(text)
  return shown.trim() === shown && /^[^`|<&]+$/.test(shown)
    ? `\`${shown}\``
    : `<code>${shown.replace(/[^\p{L}\p{M}\p{N}]/gu, entity)}</code>`
}

module.exports = { markdownText, markdownCode }

'use strict'

const { styleText } = require('node:util')
const { printable } = require('@memwatch/engine/text/printable')

/**
 * @typedef {string | { text: string, style: Parameters<typeof styleText>[0] }} Line text of one
 *   line, and its style
 */

/**
 * Formats lines for a terminal. Styles are applied after texts are escaped, so that no text can set
 * a style.
 * @param {readonly Line[]} lines
 * @param {{ colour?: boolean }} [options]
 * @returns {string} text with a newline after each line
 */
function terminalText (lines, { colour = false } = {}) {
  return lines
    .map(line => {
      if (typeof line === 'string') return `${printable(line)}\n`
      const text = printable(line.text)
      return `${colour ? styleText(line.style, text, { validateStream: false }) : text}\n`
    })
    .join('')
}

module.exports = { terminalText }

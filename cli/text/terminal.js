'use strict'

const { styleText } = require('node:util')
const { printable } = require('@memwatch/engine/text/printable')

/**
 * @typedef {string | { text: string, style: Parameters<typeof styleText>[0] }} Line text of one
 *   line, and its style
 */

/**
 * Lines for a terminal. The style is applied to escaped text, so that no text brings its own.
 * @param {readonly Line[]} lines
 * @param {{ colour?: boolean }} [options]
 * @returns {string} with a newline after each line
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

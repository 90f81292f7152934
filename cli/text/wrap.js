'use strict'

/**
 * @param {string} text
 * @param {number} width
 * @param {number} [indent]
 * @returns {string[]} lines that are no longer than the width, unless a word is; continuation lines
 *   of an item that begins with a dash are indented
 */
function wrap (text, width, indent = 0) {
  const lines = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > width) {
      lines.push(line)
      line = text.startsWith('- ') ? `  ${word}` : word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line].map(item => ' '.repeat(indent) + item)
}

module.exports = { wrap }

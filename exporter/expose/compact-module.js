'use strict'

const fs = require('node:fs')

/**
 * Removes comments and indentation of an ECMAScript module: a third of the page's code. A line
 * break between two tokens stays, because it may end a statement.
 * @param {string} source
 * @returns {string}
 */
function compactModule (source) {
  // Most exporters never serve the page.
  const { parse } = require('acorn')
  let text = ''
  let at = 0
  parse(source, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    onToken: ({ start, end }) => {
      const gap = source.slice(at, start)
      text += (gap.includes('\n') ? '\n' : gap && ' ') + source.slice(start, end)
      at = end
    }
  })
  return text
}

/** @param {string} file path of a module */
const readCompactModule = file => compactModule(fs.readFileSync(file, 'utf8'))

module.exports = { compactModule, readCompactModule }

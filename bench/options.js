'use strict'

const fs = require('node:fs')
const { parseArgs } = require('node:util')

/**
 * Options of a bench's command line. `--help` prints the first comment of the bench, which
 * describes its options, and ends the process. So does a wrong option, with status 2.
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Options
 * @param {string} file file of the bench
 * @param {Options} options
 */
function parseOptions (file, options) {
  if (process.argv.includes('--help')) {
    const [comment] = /\/\*\*[\s\S]*?\*\//.exec(fs.readFileSync(file, 'utf8')) ?? ['']
    process.stdout.write(comment.replace(/^\/\*\*\n| \*\/$/g, '').replace(/^ \* ?/gm, ''))
    process.exit(0)
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    process.stderr.write(`${/** @type {Error} */ (error).message} (--help lists the options)\n`)
    process.exit(2)
  }
}

module.exports = { parseOptions }

'use strict'

const { printable } = require('./printable')

/**
 * Lines that set variables. Docker expands $ in double quotes and reads a backslash as an escape. A
 * value cannot contain a line break.
 *
 * @param {Record<string, string>} env
 * @returns {string[]}
 */
const envLines = env =>
  Object.entries(env).map(
    ([name, value]) => `ENV ${name}="${printable(value).replace(/[\\"$]/g, '\\$&')}"`
  )

module.exports = { envLines }

'use strict'

const { printable } = require('./printable')

/**
 * Lines that set variables. Docker expands $ in double quotes and takes a backslash for an escape;
 * no line break can stand in a value.
 * https://docs.docker.com/reference/dockerfile/#environment-replacement
 *
 * @param {Record<string, string>} env
 * @returns {string[]}
 */
const envLines = env =>
  Object.entries(env).map(
    ([name, value]) => `ENV ${name}="${printable(value).replace(/[\\"$]/g, '\\$&')}"`
  )

module.exports = { envLines }

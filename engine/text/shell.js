'use strict'

/**
 * Characters without a special meaning inside a word, in POSIX shells and in interactive bash and
 * zsh.
 */
const PLAIN = /^[A-Za-z0-9_./:,@%+=-]+$/

/**
 * One word of a command line. Single quotes preserve every character. POSIX.1-2024, Shell Command
 * Language, 2.2.2.
 * @param {string} text
 * @returns {string}
 */
const shellWord = text => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/**
 * Words that contain no space, such as flags of Node.js.
 * @param {string} text
 * @returns {string}
 */
const shellWords = text => text.split(' ').map(shellWord).join(' ')

/**
 * Variable assignments for use before a command, or after `env` or `export`.
 * @param {Record<string, string>} env
 * @returns {string[]} NAME=value, one each
 */
const shellAssignments = env =>
  Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`)

module.exports = { shellWord, shellWords, shellAssignments }

'use strict'

/**
 * Characters that no POSIX shell, nor the interactive bash and zsh, gives a meaning inside a word.
 */
const PLAIN = /^[A-Za-z0-9_./:,@%+=-]+$/

/**
 * One word of a command line: single quotes keep every character as it is. POSIX.1-2024, Shell
 * Command Language, 2.2.2.
 * @param {string} text
 * @returns {string}
 */
const shellWord = text => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/**
 * Words that hold no space, as flags of Node.js do.
 * @param {string} text
 * @returns {string}
 */
const shellWords = text => text.split(' ').map(shellWord).join(' ')

/**
 * Variables before a command, or after `env` or `export`.
 * @param {Record<string, string>} env
 * @returns {string[]} NAME=value, one each
 */
const shellAssignments = env =>
  Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`)

module.exports = { shellWord, shellWords, shellAssignments }

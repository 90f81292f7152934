'use strict'

const { printable } = require('./printable')

/**
 * A one-line comment for YAML, a Dockerfile or a shell. No text can end it: YAML 1.1 also breaks
 * lines at NEL, LS and PS.
 * @param {string} text
 * @returns {string} without a newline
 */
const comment = text => `# ${printable(text)}`.trimEnd()

module.exports = { comment }

'use strict'

const { printable } = require('./printable')

/**
 * A comment of one line, in YAML, a Dockerfile or a shell: no text ends it. YAML 1.1 breaks lines
 * at NEL, LS and PS, too.
 * @param {string} text
 * @returns {string} without a newline
 */
const comment = text => `# ${printable(text)}`.trimEnd()

module.exports = { comment }

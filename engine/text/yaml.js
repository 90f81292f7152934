'use strict'

const { comment } = require('./comment')
const { replacer, UNPRINTABLE } = require('./json')

/** Strings are always quoted as in JSON, so that no version of YAML reads one as another type. */
const OPTIONS = Object.freeze({
  defaultStringType: 'QUOTE_DOUBLE',
  defaultKeyType: 'PLAIN',
  doubleQuotedAsJSON: true,
  lineWidth: 0,
  aliasDuplicateObjects: false
})

/**
 * Converts a value to one YAML document.
 * @param {Record<string, unknown>} value
 * @param {readonly string[]} [comments] comment lines at the top
 * @returns {string} with a newline at its end
 */
function toYaml (value, comments = []) {
  // Loaded on first use: a sidecar that is only scraped prints no YAML.
  const { stringify } = require('yaml')
  const text = stringify(value, replacer, /** @type {import('yaml').ToStringOptions} */ (OPTIONS))
  return [...comments.map(comment), text.replace(UNPRINTABLE, escaped)].join('\n')
}

/** Escape of a character in double quotes. @param {string} character */
function escaped (character) {
  const code = /** @type {number} */ (character.codePointAt(0)).toString(16)
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`
}

module.exports = { toYaml }

'use strict'

/**
 * @param {readonly string[]} addons file names of the loaded addons
 * @returns {string} a sentence
 */
const loadedAddonsText = addons => addons.length > 0
  ? `Loaded native addons, which may hold the memory: ${addons.join(', ')}.`
  : 'No native addon is loaded: Node.js itself holds the memory, such as zlib, TLS, SQLite or Intl.'

module.exports = { loadedAddonsText }

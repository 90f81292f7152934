'use strict'

/** Limits of a list on the wire: length of a text, number of texts, characters in total. */
const MAX_TEXT = 4096
const MAX_TEXTS = 1000
const MAX_LIST = 16_384

/**
 * @param {string[]} texts
 * @returns {string[]} the first texts within the limits
 */
function fitting (texts) {
  let length = 0
  return texts.slice(0, MAX_TEXTS).filter(text => (length += text.length) <= MAX_LIST)
}

module.exports = { MAX_TEXT, fitting }

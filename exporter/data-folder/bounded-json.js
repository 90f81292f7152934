'use strict'

const v8 = require('node:v8')

/**
 * Upper bound of the bytes on V8's heap that a character of JSON costs once parsed. A bracket costs
 * an array, a brace an object with its first property, and a comma one more value. In the mappings
 * of a source map, `;` and `,` cost lines and segments.
 */
const HEAP_BYTES = new Uint8Array(128)
for (const [character, bytes] of Object.entries({ '{': 72, '[': 40, ',': 72, ';': 40 })) {
  HEAP_BYTES[character.charCodeAt(0)] = bytes
}
/**
 * Share of the free heap that parsing may use; the rest of the exporter needs memory at the same
 * time.
 */
const HEADROOM_SHARE = 0.5

/** @returns {number} bytes */
function heapHeadroom () {
  const { heap_size_limit: limit, used_heap_size: used } = v8.getHeapStatistics()
  return limit - used
}

/**
 * JSON.parse for untrusted texts. Once parsed, `[[],[],…]` takes twenty times its length, and a
 * full heap ends the process.
 * @param {string} text
 * @param {{ headroomBytes?: number }} [options] headroomBytes: free bytes of the heap
 * @returns {any}
 * @throws {SyntaxError} if the text is not JSON
 * @throws {RangeError} if parsing might need more than half of the free heap
 */
function parseBounded (text, { headroomBytes = heapHeadroom() } = {}) {
  let bytes = 2 * text.length
  const most = HEADROOM_SHARE * headroomBytes
  for (let i = 0; i < text.length && bytes <= most; i++) {
    bytes += HEAP_BYTES[text.charCodeAt(i)] ?? 0
  }
  if (bytes > most) throw new RangeError(`JSON of ${text.length} characters does not fit in memory`)
  return JSON.parse(text)
}

module.exports = { heapHeadroom, parseBounded }

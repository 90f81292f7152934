'use strict'

/**
 * An app that touches half of the pages of a Buffer, and prints resident bytes by the agent and by
 * smaps. It is a process of its own, because threads of a test runner allocate memory meanwhile.
 */

const fs = require('node:fs')
const { mappingsReader } = require('../../agent/collect/mappings')
const { residentPages } = require('../../agent/collect/resident-pages')

const MIB = 2 ** 20
const PAGE = 4096
const BYTES = 96 * MIB
const PARTS = /** @type {const} */ (['malloc_heap', 'malloc_mapped', 'malloc_arenas', 'stacks'])

const buffer = Buffer.from(new ArrayBuffer(BYTES))
for (let at = 0; at < BYTES; at += 8 * PAGE) buffer.fill(1, at, at + 4 * PAGE)

function compare () {
  const { layout: { mappings }, add } = mappingsReader()
  add(fs.readFileSync('/proc/self/smaps', 'latin1'))
  const whole = drained(residentPages()(mappings))
  const differences = PARTS.map(part => {
    const own = mappings.filter(mapping => mapping.part === part)
    return Math.abs(whole[part] - own.reduce((sum, { rssBytes }) => sum + rssBytes, 0))
  })
  return { mappings, whole, differenceBytes: Math.max(...differences) }
}

// Threads of Node.js may allocate between the two readings, so the pair with the smallest
// difference counts.
const { mappings, whole, differenceBytes } = Array.from({ length: 5 }, compare)
  .reduce((a, b) => a.differenceBytes <= b.differenceBytes ? a : b)
const sampled = residentPages({ mostWindows: 20 })
const samples = Array.from({ length: 8 }, () => drained(sampled(mappings)).malloc_mapped)
console.log(JSON.stringify({
  differenceBytes, mappedBytes: whole.malloc_mapped, samples, firstByte: buffer[0]
}))

/**
 * @template Result
 * @param {Generator<unknown, Result>} generator
 */
function drained (generator) {
  for (;;) {
    const { done, value } = generator.next()
    if (done) return /** @type {Result} */ (value)
  }
}

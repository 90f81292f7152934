'use strict'

const { TextParts } = require('../../exporter/expose/text-parts')

const PART = 65_536

/** @param {string[]} pieces */
function written (pieces) {
  const text = new TextParts()
  for (const piece of pieces) text.write(piece)
  return text
}

it.each([
  ['nothing', []],
  ['empty pieces', ['', '']],
  ['one less than a part', ['a'.repeat(PART - 1)]],
  ['a part', ['a'.repeat(PART)]],
  ['one more than a part', ['a'.repeat(PART), 'b']],
  ['many parts', Array.from({ length: 50 }, (_, i) => `${i} `.repeat(1000))],
  ['several bytes a character', Array.from({ length: 50 }, (_, i) => `${i}é€😀`.repeat(200))]
])('%s: the parts add up to the text', (_, pieces) => {
  const text = written(pieces)
  expect(text.isEmpty).toBe(pieces.join('') === '')
  const parts = text.end()
  expect(Buffer.concat(parts).toString()).toBe(pieces.join(''))
  expect(parts.filter(({ length }) => length === 0)).toEqual([])
})

it.each([
  ['small behind small', 10, 10],
  ['large behind small', 10, 3 * PART],
  ['small behind large', 3 * PART, 10],
  ['large behind large', 3 * PART, 3 * PART],
  ['nothing behind small', 10, 0],
  ['small behind nothing', 0, 10]
])('texts are appended in order: %s', (_, before, after) => {
  const text = written(['<', 'a'.repeat(before)])
  const other = written(Array.from({ length: after / 10 }, (_, i) => String(i).padStart(10)))
  text.append(other)
  text.write('>')
  expect(Buffer.concat(text.end()).toString())
    .toBe(`<${'a'.repeat(before)}${Buffer.concat(other.end()).toString()}>`)
})

it('small texts share a part', () => {
  const text = new TextParts()
  for (let i = 0; i < 100; i++) text.append(written([`line ${i}\n`]))
  expect(text.end()).toHaveLength(1)
})

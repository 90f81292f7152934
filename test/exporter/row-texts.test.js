'use strict'

const { RowTexts } = require('../../exporter/expose/row-texts')

/** @param {string[][]} batches each the texts of its rows, in order */
async function read (batches) {
  const texts = new RowTexts()
  for (const rows of batches) {
    for (const text of rows) texts.write(text)
    texts.endBatch()
  }
  const parts = []
  for await (const part of texts.parts()) parts.push(part)
  return { parts, text: Buffer.concat(parts).toString(), length: texts.length }
}

it('what is written batch by batch is read row by row', async () => {
  expect(await read([['a1', 'b1', '', 'd1'], ['a2', '', 'c2', 'd2'], ['', 'b3', '', '', 'e3']])).toMatchObject({ text: 'a1a2b1b3c2d1d2e3', length: 16 })
})

it('nothing is read where nothing was written', async () => {
  expect(await read([['', '']])).toMatchObject({ text: '', length: 0 })
})

it.each([1, 100, 16_383, 16_384, 16_385, 40_000])('rows of %d bytes lie across blocks, and come as parts of a block each', async size => {
  const batches = Array.from({ length: 7 }, (_, batch) => Array.from({ length: 5 }, (_, row) => String.fromCharCode(97 + row).repeat(size) + batch))
  const { parts, text, length } = await read(batches)
  expect(text).toBe([0, 1, 2, 3, 4].map(row => batches.map(rows => rows[row]).join('')).join(''))
  expect(length).toBe(35 * (size + 1))
  expect(parts.slice(0, -1).every(part => part.length === 16_384)).toBe(true)
})

it('characters of several bytes may lie across blocks', async () => {
  const batches = Array.from({ length: 50 }, (_, batch) => ['é', '€', '😀'].map(character => `${batch} ${character.repeat(300 + batch)}\n`))
  const { text, length } = await read(batches)
  expect(text).toBe([0, 1, 2].map(row => batches.map(rows => rows[row]).join('')).join(''))
  expect(length).toBe(Buffer.byteLength(text))
})

it('the end of a text may be given by itself', async () => {
  const texts = new RowTexts()
  texts.write('a', '\n')
  texts.write('', '')
  texts.write('b', '\n\n')
  texts.endBatch()
  const parts = []
  for await (const part of texts.parts()) parts.push(part)
  expect(Buffer.concat(parts).toString()).toBe('a\nb\n\n')
})

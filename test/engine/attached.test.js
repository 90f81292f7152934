'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { replay } = require('../../engine/recording/replay')
const { attachedAt, beginningOf } = require('../support/attached-recording')

const FOLDER = path.join(__dirname, '../recordings')
const baseline = JSON.parse(fs.readFileSync(path.join(FOLDER, 'baseline.json'), 'utf8'))
const names = Object.keys(baseline)

jest.setTimeout(180_000)

/**
 * @param {ReturnType<typeof attachedAt>} input
 * @returns {Promise<Set<string>>} diagnoses confirmed at any time, without opportunities
 */
async function confirmedIn (input) {
  /** @type {Set<string>} */
  const confirmed = new Set()
  await replay(input, {
    onVerdict: (_, { state, diagnosis, opportunity }) => {
      if (state === 'confirmed' && !opportunity) confirmed.add(diagnosis)
    },
    onError: error => { throw error }
  })
  return confirmed
}

it('an attach to a healthy app confirms nothing', async () => {
  const healthy = names.filter(name => baseline[name].ever.length === 0)
  expect(healthy.length).toBeGreaterThan(50)
  for (const name of healthy) {
    const confirmed = await confirmedIn(attachedAt(path.join(FOLDER, name), 0.5))
    expect([name, ...confirmed]).toEqual([name])
  }
})

it('after an attach 98 % of the findings of a preloaded agent are confirmed in the same time', async () => {
  /** @type {string[]} */
  const missed = []
  const ill = names.filter(name => baseline[name].expected !== null)
  let found = 0
  for (const name of ill) {
    const file = path.join(FOLDER, name)
    const preloaded = await confirmedIn(beginningOf(file, 0.5))
    if (!preloaded.has(baseline[name].expected)) continue
    found++
    const attached = await confirmedIn(attachedAt(file, 0.5))
    if (!attached.has(baseline[name].expected)) missed.push(name)
  }
  expect(found).toBeGreaterThan(20)
  expect(missed.length).toBeLessThanOrEqual(0.02 * found)
})

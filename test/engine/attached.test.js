'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { replayFile } = require('../../cli/sources/replay-file')
const { replay } = require('../../engine/recording/replay')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { findCase } = require('../../engine/verdicts/case')
const { Target } = require('../../engine/history/target')
const { attachedAt, beginningOf } = require('../support/attached-recording')
const { hello } = require('../support/frames')

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
  expect(missed.length).toBeLessThanOrEqual(Math.round(0.02 * found))
})

it.each([
  ['confirmed', true, 'keep'],
  ['confirmed', false, 'fill'],
  ['ok', false, undefined]
])('a cause that is %s has own suspects (%s), or those of its symptom', (state, own, name) => {
  const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
  const known = findCase(target)
  const attached = (/** @type {string} */ name) => /** @type {any} */ ({
    captureId: name, suspects: { sites: [], of: 'survivors', packages: [] }
  })
  known.verdicts = /** @type {any} */ ([{ diagnosis: 'buffer-pool-pinning', state }])
  known.suspects.set('js-heap-leak', attached('other'))
  known.suspects.set('native-memory-leak', attached('fill'))
  if (own) known.suspects.set('buffer-pool-pinning', attached('keep'))
  expect(attachedVerdicts(target)[0].suspects?.captureId).toBe(name)
})

it('a full heap has no suspects of the loop that its GCs block', () => {
  const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
  const known = findCase(target)
  known.verdicts = /** @type {any} */ ([{ diagnosis: 'heap-limit-thrash', state: 'confirmed' }])
  known.suspects.set('event-loop-blocked', /** @type {any} */ ({
    captureId: 'busy', suspects: { sites: [], of: 'time', packages: [] }
  }))
  expect(attachedVerdicts(target)[0].suspects).toBeNull()
})

it('a finding of native memory names the loaded addons, one of the heap does not', async () => {
  const addonsIn = async (/** @type {string} */ name, addons) => {
    const { targets: [target] } = await replayFile(path.join(FOLDER, name))
    target.values.addons = addons
    const found = attachedVerdicts(target).find(({ state }) => state === 'confirmed')
    return found?.loadedAddons
  }
  const native = '24-native-memory-leak-broken.ndjson.gz'
  expect(await addonsIn(native, {})).toEqual([])
  expect(await addonsIn(native, { 'node_api/sharp.node': 1, 'unread/a.node': 1 })).toEqual([
    'a.node', 'sharp.node'
  ])
  expect(await addonsIn(native, undefined)).toBeNull()
  expect(await addonsIn('24-js-heap-leak-broken.ndjson.gz', { 'v8/a.node': 1 })).toBeNull()
})

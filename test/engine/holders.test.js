'use strict'

const { diagnoses } = require('../../engine/diagnoses')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { findCase } = require('../../engine/verdicts/case')
const { Target } = require('../../engine/history/target')
const { hello } = require('../support/frames')
const { selectHolders } = require('../../engine/verdicts/holders')
const { originOf, packageOf, nameOwner } = require('../../engine/text/code-owner')

const MIB = 2 ** 20
const pile = (text, more = {}) => ({
  text, className: 'Session', count: 9, retainedBytes: MIB, bufferBytes: 0, package: null,
  root: 'module', path: [], ...more
})
const objects = pile('objects')
const buffers = pile('buffers', { bufferBytes: MIB / 2 })
const holders = {
  captureId: '1', file: null, atUnixMs: 2, sinceUnixMs: null, refused: null,
  piles: [objects, buffers, objects, objects]
}
const textsOf = found => found?.piles.map(({ text }) => text) ?? null

describe('holders of a verdict', () => {
  it.each([
    ['js-heap-leak', 'confirmed', null, ['objects', 'buffers', 'objects']],
    ['js-heap-leak', 'suspected', null, ['objects', 'buffers', 'objects']],
    ['js-heap-leak', 'ok', null, null],
    ['native-memory-leak', 'confirmed', null, ['buffers']],
    ['buffer-pool-pinning', 'confirmed', null, ['buffers']],
    ['resource-leak', 'confirmed', null, null],
    ['resource-leak', 'confirmed', 1, ['objects', 'buffers', 'objects']],
    ['event-loop-blocked', 'confirmed', null, null]
  ])('of %s, %s, since %s', (diagnosis, state, sinceUnixMs, texts) => {
    const found = selectHolders(/** @type {any} */ ({ diagnosis, state }), { ...holders, sinceUnixMs })
    expect(textsOf(found)).toEqual(texts)
    expect(selectHolders(/** @type {any} */ ({ diagnosis, state }), null)).toBe(null)
  })

  it('exist for leaks only', () => {
    expect(diagnoses.filter(({ holds }) => holds).map(({ id }) => id).sort()).toEqual([
      'buffer-pool-pinning', 'context-leak', 'heap-limit-thrash', 'js-heap-leak',
      'native-memory-leak', 'resource-leak'
    ])
  })

  it('are part of the verdict, with the lines of code', () => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    const found = findCase(target)
    const leak = { diagnosis: 'js-heap-leak', state: 'confirmed' }
    found.verdicts = /** @type {any} */ ([leak])
    expect(attachedVerdicts(target))
      .toEqual([expect.objectContaining({ ...leak, suspects: null, holders: null })])
    found.holders = holders
    expect(textsOf(attachedVerdicts(target)[0].holders)).toEqual(['objects', 'buffers', 'objects'])
  })
})

describe('the owner of a file', () => {
  it.each([
    ['/srv/shop/src/cache.js', 'app', null],
    ['C:\\shop\\src\\cache.js', 'app', null],
    ['/srv/shop/node_modules/lru/index.js', 'dependency', 'lru'],
    ['node_modules/lru/index.js', 'dependency', 'lru'],
    ['file:///srv/shop/node_modules/@a/b/x.mjs', 'dependency', '@a/b'],
    ['/srv/shop/node_modules/a/node_modules/@b/c/x.js', 'dependency', '@b/c'],
    ['C:\\shop\\node_modules\\@a\\b\\x.js', 'dependency', '@a/b'],
    ['/srv/shop/node_modules/.pnpm/lru@1.0.0/node_modules/lru/index.js', 'dependency', 'lru'],
    ['/srv/shop/node_modules/.pnpm/@a+b@1.0.0_c@2/node_modules/@a/b/x.js', 'dependency', '@a/b'],
    ['/srv/.yarn/cache/lru-npm-1.0.0-abc.zip/node_modules/lru/x.js', 'dependency', 'lru'],
    ['/srv/shop/node_modules/.cache/x.js', 'dependency', null],
    ['node:internal/timers', 'node', null],
    ['', 'native', null]
  ])('%s', (file, origin, name) => {
    expect([originOf(file), packageOf(file)]).toEqual([origin, name])
    const others = { node: 'node', native: 'native code' }
    expect(nameOwner(file, 'shop')).toBe(name ?? others[origin] ?? 'shop')
  })
})

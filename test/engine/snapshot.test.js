'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { HeapGraphReader } = require('../../engine/snapshot/heap-graph')
const { dominate } = require('../../engine/snapshot/dominators')
const { findHolders } = require('../../engine/snapshot/findings')
const { predictMemory } = require('../../engine/snapshot/layout')
const { Redactor } = require('../../engine/snapshot/redact')
const { sentenceOf, placeText } = require('../../engine/snapshot/sentence')
const { SnapshotError } = require('../../engine/snapshot/snapshot-error')
const { SnapshotIdsReader } = require('../../engine/snapshot/snapshot-ids')

const APP = path.join(__dirname, '../support/holding-app.js')
const NODES = (process.env.TEST_NODES || process.execPath).split(':')
const SECRET = 'correct horse battery staple'
const GIB = 2 ** 30

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'snapshot-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string} way
 * @param {{ node?: string, isTwice?: boolean }} [options]
 * @returns {Buffer[]} paths of the snapshots written by the app
 */
function takeSnapshots (way, { node = process.execPath, isTwice = false } = {}) {
  const files = ['1', '2'].slice(0, isTwice ? 2 : 1).map(n => path.join(folder, n))
  execFileSync(node, [APP, way, ...files], { stdio: 'ignore' })
  return files.map(file => fs.readFileSync(file))
}

/**
 * @template T
 * @param {{ write (chunk: Buffer): void, end (): T }} reader
 * @param {Buffer} bytes
 * @param {number} [size] size of a piece
 * @returns {T}
 */
function feed (reader, bytes, size = 65_536) {
  for (let at = 0; at < bytes.length; at += size) reader.write(bytes.subarray(at, at + size))
  return reader.end()
}

/**
 * @param {Buffer} bytes
 * @param {number} [size]
 */
const read = (bytes, size) => feed(new HeapGraphReader({ allowedBytes: GIB }), bytes, size)

const mapOfModule = (() => {
  /** @type {Buffer | undefined} */
  let bytes
  return () => (bytes ??= takeSnapshots('Map of a module')[0])
})()

/** A snapshot of three nodes: a root, an object and the object that it holds. */
const small = ({ nodes = 3, nodeNumbers = '9,0,1,0,1, 3,1,3,10,1, 3,2,5,20,0', to = 10 } = {}) =>
  Buffer.from(`{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count"],
"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic"],
"string","number","number","number"],"edge_fields":["type","name_or_index","to_node"],
"edge_types":[["context","element","property"],"string_or_number","node"]},
"node_count":${nodes},"edge_count":2},
"nodes":[${nodeNumbers}],"edges":[1,0,5,2,3,${to}],"strings":["","Cache","Entry","entries"]}`)

describe.each(NODES)('the holder of a pile, on %s', node => {
  it.each([
    ['Map of a module', 'Item', 'Map `sessions`', 'module', 'functions that use this variable'],
    ['closure', 'Item', 'Array `pending`', 'module_cache', 'the module cache'],
    ['listener', 'function', 'Array `order`', 'listener', 'a listener of `order` on an EventEmitter'],
    ['listener of an EventTarget', 'Listener', 'kEvents', 'listener', 'a listener on an'],
    ['timer', 'Timeout', 'the timers', 'timer', 'a timer of setTimeout() or setInterval()'],
    ['pending promise', 'PromiseReaction', 'Promise `stopped`', 'promise', 'a pending promise'],
    ['async function that waits', 'PromiseReaction', 'Promise `ready`', 'promise', 'a pending promise'],
    ['AsyncLocalStorage', 'Timeout', 'as the store of an AsyncLocalStorage', 'timer', 'a timer'],
    ['one AsyncLocalStorage of two', 'Timeout', 'as the store of an AsyncLocalStorage', 'timer', 'a timer'],
    ['store of the main program', 'Item', 'Array `seen`', 'async_context', ''],
    ['handle of native code', 'MessagePort', 'native code', 'handle', 'a'],
    ['exports of a module', 'Item', 'Array `kept`', 'module_cache', 'the module cache'],
    ['interval', 'Timeout', 'the timers', 'timer', 'a timer of setTimeout() or setInterval()'],
    ['listener on a class of the app', 'function', 'Array `paid`', 'listener', 'a listener of `paid` on a Basket'],
    ['FinalizationRegistry', 'WeakCell', 'FinalizationRegistry `registry`', 'finalization', 'a FinalizationRegistry'],
    ['static field', 'Item', 'Set `all` of function Registry', 'module_cache', 'the module cache'],
    ['global variable', 'Item', 'Array `leaked`', 'global', 'the global variable `leaked`'],
    ['linked list', 'Object {item, next}', 'Object `queue`', 'module_cache', 'the module cache'],
    ['shards of a cache', 'Item', 'Array `shards`', 'module_cache', 'the module cache'],
    ['tree without siblings', 'Item', 'Object `tree`', 'module_cache', 'the module cache'],
    ['WeakMap with keys that live', 'Object', 'Array `keys`', 'module_cache', 'the module cache']
  ])('%s', (way, className, holder, root, words) => {
    const [bytes] = takeSnapshots(way, { node })
    const [finding] = findHolders(read(bytes)).findings
    const sentence = sentenceOf(finding)
    expect(finding.className).toBe(className)
    // Each MessageChannel has two ports.
    expect(finding.count).toBe(className === 'MessagePort' ? 1000 : 500)
    // Each Item holds an array of 40 numbers and more.
    expect(finding.retainedBytes).toBeGreaterThan(500 * 40 * 8)
    expect(finding.root.kind).toBe(root)
    expect(sentence).toContain(holder)
    expect(sentence).toContain('holding-app.js')
    expect(sentence).toContain(`kept alive by ${words}`)
    const keeps = finding.keeps?.className ?? finding.className
    const isWrapped = ['linked list', 'WeakMap with keys that live', 'handle of native code']
    if (!isWrapped.includes(way)) expect(keeps).toBe('Item')
  })
})

describe.each(NODES)('Buffers, on %s', node => {
  it.each([
    ['slice of a large Buffer', /^500 Buffer objects, 7\.\d MiB \(they keep 500 ArrayBuffers of 16 KiB: a slice keeps all of its ArrayBuffer\), held by Map `tokens`/, { views: 500, viewName: 'Buffer' }],
    ['slices of one large Buffer', /^500 ArrayBuffer objects, 7\.\d MiB \(2,000 Buffer slices keep 500 ArrayBuffers of 16 KiB\), held by Map `parts`/, { views: 2000, viewName: 'Buffer' }]
  ])('%s', (way, sentence, pins) => {
    const [bytes] = takeSnapshots(way, { node })
    const [finding] = findHolders(read(bytes)).findings
    expect(sentenceOf(finding)).toMatch(sentence)
    expect(finding.pins).toEqual({ stores: 500, storeBytes: 16_384, ...pins })
    expect(finding.bufferBytes).toBeGreaterThanOrEqual(500 * 16_384)
  })

  it('are not mentioned for a holder without Buffers', () => {
    const [finding] = findHolders(read(mapOfModule())).findings
    expect([finding.pins, finding.bufferBytes]).toEqual([null, 0])
  })
})

describe('growth between two snapshots', () => {
  it('counts new objects, and names their holder', () => {
    const [earlier, later] = takeSnapshots('Map of a module', { isTwice: true })
    const ids = feed(new SnapshotIdsReader({ allowedBytes: GIB }), earlier)
    const graph = read(later)
    const { added, findings: [finding] } = findHolders(graph, { isNew: ids.compare(graph) })
    expect(finding.count).toBe(500)
    expect(sentenceOf(finding)).toContain('held by Map `sessions`')
    expect(added?.bytes).toBeGreaterThanOrEqual(finding.retainedBytes)
  })

  it('refuses snapshots of two processes', () => {
    const ids = feed(new SnapshotIdsReader({ allowedBytes: GIB }), mapOfModule())
    const [other] = takeSnapshots('timer')
    expect(() => ids.compare(read(other))).toThrow(/from different processes/)
  })
})

describe('the reader', () => {
  it('reads pieces of any size alike', () => {
    const whole = read(small())
    for (const size of [1, 2, 3, 7, 100]) {
      const graph = read(small(), size)
      expect([...graph.edgeTo]).toEqual([...whole.edgeTo])
      expect([0, 1, 2].map(n => graph.nameOf(n))).toEqual(['', 'Cache', 'Entry'])
      expect(graph.edgeNameOf(1)).toBe('entries')
    }
  })

  it('computes retained sizes whose sum is the size of all reachable objects', () => {
    const { retainedBytes } = dominate(read(small()))
    expect([...retainedBytes]).toEqual([30, 30, 20])
  })

  it.each([0.01, 0.3, 0.6, 0.99])('names the byte at which an incomplete file ends: %d', share => {
    const bytes = mapOfModule()
    const cut = bytes.subarray(0, Math.floor(bytes.length * share))
    expect(() => read(cut)).toThrow(new RegExp(`ends within .*, at byte ${cut.length}$`))
  })

  it.each([
    ['no JSON', Buffer.from('hello'), /does not begin with \{, at byte 0/],
    ['another JSON', Buffer.from('{"name":"shop"}'), /its first member is not "snapshot"/],
    ['a header without fields', Buffer.from('{"snapshot":{"node_count":1}}'), /lacks fields/],
    ['a node too many', small({ nodes: 2 }), /more nodes than node_count/],
    ['a node too few', small({ nodes: 4 }), /node_count should be 4, but is 3/],
    ['an edge out of the heap', small({ to: 15 }), /edge 1 has an invalid type or to_node/],
    ['an edge into the middle of a node', small({ to: 11 }), /edge 1 has an invalid type or to_node/],
    ['a negative number', small({ nodeNumbers: '9,0,-1' }), /not a whole number, at byte \d+/],
    ['a type that is not', small({ nodeNumbers: '10,0,1,0,1' + ', 3,1,3,10,1, 3,2,5,20,0' }), /node 0 has an invalid type/],
    ['a name that is not', small({ nodeNumbers: '9,9,1,0,1, 3,1,3,10,1, 3,2,5,20,0' }), /a name is missing/],
    ['a name beyond all', small({ nodeNumbers: '9,4000000000,1,0,1' + ',3,1,3,10,1,3,2,5,20,0' }), /beyond the possible number of strings/]
  ])('refuses %s', (_, bytes, why) => {
    expect(() => read(bytes)).toThrow(why)
  })

  it('survives any damaged byte', () => {
    const bytes = small()
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Buffer.from(bytes)
      damaged[at] ^= 1 + (at % 255)
      try {
        findHolders(read(damaged))
      } catch (error) {
        expect(error).toBeInstanceOf(SnapshotError)
      }
    }
  })

  it('refuses, before it allocates, a snapshot that needs more memory than allowed', () => {
    const bytes = small({ nodes: 4_000_000_000 })
    const predictedBytes = predictMemory({ nodeCount: 4_000_000_000, edgeCount: 2 })
    expect(() => feed(new HeapGraphReader({ allowedBytes: predictedBytes - 1 }), bytes)).toThrow(
      expect.objectContaining({ code: 'too_large', predictedBytes, allowedBytes: predictedBytes - 1 })
    )
    const allowedBytes = predictMemory({ nodeCount: 3, edgeCount: 2 })
    expect(feed(new HeapGraphReader({ allowedBytes }), small()).nodeCount).toBe(3)
  })
})

describe('a redacted copy', () => {
  it.each(['Map of a module', 'listener', 'pending promise'])(
    'of %s contains no secret, and leads to the same finding',
    way => {
      const [bytes] = takeSnapshots(way)
      expect(bytes.includes(SECRET)).toBe(true)
      /** @type {Buffer[]} */
      const pieces = []
      feed(new Redactor(piece => pieces.push(piece)), bytes)
      const copy = Buffer.concat(pieces)
      expect(copy.includes(SECRET)).toBe(false)
      expect(copy.includes('session 1')).toBe(false)
      const [before, after] = [bytes, copy].map(of => sentenceOf(findHolders(read(of)).findings[0]))
      expect(after).toBe(before)
    }
  )

  it('is the same for pieces of any size', () => {
    const copies = [1000, 65_536].map(size => {
      /** @type {Buffer[]} */
      const pieces = []
      feed(new Redactor(piece => pieces.push(piece)), mapOfModule(), size)
      return Buffer.concat(pieces)
    })
    expect(copies[0].equals(copies[1])).toBe(true)
    expect(JSON.parse(copies[0].toString()).strings.length).toBeGreaterThan(1000)
  })
})

it('paths are relative to the package or to the folder of the app', () => {
  const text = (/** @type {string} */ file, line = 7) =>
    placeText({ file, line, package: null }, '/srv/shop')
  expect(text('/srv/shop/src/cache.js')).toBe('src/cache.js:7')
  expect(text('/srv/shop/node_modules/a/node_modules/@b/c/x.js')).toBe('node_modules/@b/c/x.js:7')
  expect(text('node:events')).toBe('node:events:7')
})

'use strict'
/* eslint-disable no-template-curly-in-string -- these are programs */

/**
 * Small apps with one known fault, for bench/captures.js, in other forms than those of the lab.
 * Each also serves its own traffic, so that profiles contain more than the culprit. `culprit`: the
 * function that must be among the first three suspects; `call`: the blocking call that must be
 * named.
 *
 * @typedef {{ id: string, kind: 'heap_profile' | 'cpu_profile', culprit: string, call?: string,
 *   code: string }} SuspectApp
 */

/** Work of every service: parse, allocate, answer. */
const TRAFFIC = `
const { createHash } = require('node:crypto')
const text = JSON.stringify(Array.from({ length: 200 }, (_, i) => ({ i, name: 'row ' + i, tags: ['a' + i, 'b'] })))
function parseRequest () { return JSON.parse(text) }
function handle (rows) { return rows.filter(row => row.i % 3).map(row => ({ ...row, hash: row.name + row.i })) }
function answer (rows) { return createHash('md5').update(JSON.stringify(rows)).digest('hex') }
setInterval(() => { for (let i = 0; i < 10; i++) answer(handle(parseRequest())) }, 20)
const every = (ms, work) => setInterval(work, ms)
`

/**
 * @param {string} id
 * @param {string} code
 * @param {string} [culprit]
 * @returns {SuspectApp}
 */
const leak = (id, code, culprit = 'culprit') => ({
  id,
  kind: 'heap_profile',
  culprit,
  code: TRAFFIC + code
})
/** Node.js has one function for all of these methods, so a profile cannot tell them apart. */
const ZLIB_CALL = 'a …Sync method of zlib'

/**
 * @param {string} by function that blocks
 * @param {string} code
 * @param {string} [call] how a profile names it
 * @returns {SuspectApp}
 */
const block = (by, code, call = by) => ({
  id: `blocked by ${by}`,
  kind: 'cpu_profile',
  culprit: 'culprit',
  call,
  code: TRAFFIC + code
})

/** @type {readonly SuspectApp[]} */
const suspectApps = Object.freeze([
  leak(
    'a list that is only added to',
    'const list = []\nfunction culprit (i) { list.push({ i, at: Date.now(), text: `event ${i}` ' +
      '}) }\nlet i = 0; every(10, () => { for (let n = 0; n < 100; n++) culprit(i++) })'
  ),
  leak(
    'a cache without an end',
    'const cache = new Map()\nasync function culprit (key) { if (!cache.has(key)) ' +
      'cache.set(key, { key, rows: Array.from({ length: 20 }, (_, i) => ({ i, key })) }); ' +
        'return cache.get(key) }\nlet i = 0; every(10, () => { for (let n = 0; n < 10; n++) ' +
          'culprit(`user:${i++}`) })'
  ),
  leak(
    'listeners that stay',
    "const bus = new (require('node:events'))(); bus.setMaxListeners(0)\nfunction culprit (id) " +
      "{ const state = { id, seen: new Array(50).fill(id) }; bus.on('tick', () => " +
        'state.seen.push(1)) }\nlet i = 0; every(10, () => { for (let n = 0; n < 8; n++) ' +
          'culprit(i++) })'
  ),
  leak(
    'promises that never settle',
    'const waiting = new Set()\nfunction culprit (id) { const request = { id, body: ' +
      'Array.from({ length: 30 }, (_, i) => `field ${i} of ${id}`) }; const promise = new ' +
        'Promise(() => {}).then(() => request); waiting.add(promise) }\nlet i = 0; every(10, () ' +
          '=> { for (let n = 0; n < 10; n++) culprit(i++) })'
  ),
  leak(
    'timers that are never cleared',
    'function culprit (session) { setInterval(() => session.beat++, 3_600_000) }\nlet i = 0; ' +
      'every(10, () => { for (let n = 0; n < 20; n++) culprit({ id: i++, beat: 0, rights: new ' +
        'Array(60).fill(i) }) })'
  ),
  leak(
    'a string that grows in pieces',
    'let log = []\nfunction culprit (line) { log.push(line.toUpperCase() + line.slice(1)) ' +
      '}\nlet i = 0; every(10, () => { for (let n = 0; n < 100; n++) culprit(`GET ' +
        '/orders/${i++} 200 12ms some user agent that is long`) })'
  ),
  leak(
    'a package that keeps for its caller',
    "const lru = require('keeper')\nfunction culprit (id) { lru.keep(id, { id }) }\nlet i = 0; " +
      'every(10, () => { for (let n = 0; n < 40; n++) culprit(i++) })'
  ),
  leak(
    'a WeakMap whose keys are kept',
    'const sessions = new WeakMap(); const users = []; class User { constructor (id) { this.id ' +
      '= id } } function culprit (id) { const user = new User(id); users.push(user); ' +
        'sessions.set(user, { started: Date.now(), history: Array.from({ length: 15 }, () => ({ ' +
          'id })) }) }\nlet i = 0; every(10, () => { for (let n = 0; n < 20; n++) culprit(i++) })'
  ),
  leak(
    'a slow one',
    'const kept = []\nfunction culprit (i) { kept.push({ i, rows: new Array(100).fill(i) }) ' +
      '}\nlet i = 0; every(10, () => { for (let n = 0; n < 3; n++) culprit(i++) })'
  ),
  block(
    'JSON.parse',
    'const big = JSON.stringify(Array.from({ length: 400_000 }, (_, i) => ({ i, name: `row ' +
      '${i}` })))\nfunction culprit () {\n  return JSON.parse(big)\n}\nevery(1000, culprit)'
  ),
  block(
    'JSON.stringify',
    'const rows = Array.from({ length: 400_000 }, (_, i) => ({ i, name: `row ${i}` ' +
      '}))\nfunction culprit () {\n  return JSON.stringify(rows)\n}\nevery(700, culprit)'
  ),
  block(
    'a regular expression',
    "function culprit () {\n  return /^(a+)+$/.test('a'.repeat(25) + 'b')\n}\nevery(700, culprit)"
  ),
  block(
    'sort',
    'function culprit () {\n  const numbers = Array.from({ length: 400_000 }, () => ' +
      'Math.random())\n  return numbers.sort((a, b) => a - b)\n}\nevery(900, culprit)'
  ),
  block(
    'gzipSync',
    "const body = require('node:crypto').randomBytes(8e6)\nfunction culprit () { return " +
      "require('node:zlib').gzipSync(body) }\nevery(700, culprit)",
    ZLIB_CALL
  ),
  block(
    'scryptSync',
    "function culprit () { return require('node:crypto').scryptSync('a', 'salt', 64, { N: " +
      '65536, maxmem: 2 ** 28 }) }\nevery(700, culprit)'
  ),
  block(
    'execSync',
    "function culprit () { return require('node:child_process').execSync('sleep 0.2') " +
      '}\nevery(700, culprit)'
  ),
  block(
    'readFileSync',
    "const file = require('node:path').join(__dirname, 'large'); " +
      "require('node:fs').writeFileSync(file, Buffer.alloc(2e8))\nfunction culprit () { return " +
        "require('node:fs').readFileSync(file).length }\nevery(900, culprit)"
  ),
  block(
    'writeFileSync',
    "const file = require('node:path').join(__dirname, 'large'); const body = " +
      "Buffer.alloc(2e8)\nfunction culprit () { return require('node:fs').writeFileSync(file, " +
        'body) }\nevery(900, culprit)'
  ),
  block(
    'brotliCompressSync',
    "const body = require('node:crypto').randomBytes(4e5)\nfunction culprit () { return " +
      "require('node:zlib').brotliCompressSync(body) }\nevery(900, culprit)",
    ZLIB_CALL
  ),
  block(
    'structuredClone',
    'const rows = Array.from({ length: 200_000 }, (_, i) => ({ i, name: `row ${i}` ' +
      '}))\nfunction culprit () {\n  return structuredClone(rows)\n}\nevery(900, culprit)'
  )
])

/** node_modules/keeper/index.js */
const KEEPER =
  'const kept = new Map()\nexports.keep = function keep (id, value) { kept.set(id, { value, at: ' +
    'Date.now(), uses: new Array(20).fill(0) }) }\n'

module.exports = { suspectApps, KEEPER }

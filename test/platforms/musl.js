'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { fetchMusl, fetchWheel, hasKept, whyNotFetched, WHEELS } = require('./fetched')
const { onMusl, whyNoRooms } = require('./rooms')
const { simulate, tellFacts } = require('./tried')

const PLATFORM = 'musllinux_1_2_x86_64'
const ROOT = path.join(__dirname, '../..')

/**
 * Checks the breakdown: musl's allocator has no statistics, so memwatch must not state shares of
 * its memory.
 */
function checkMalloc (/** @type {ReturnType<typeof import('./tried').read>} */ { parts, states, notKnown }) {
  assert.deepStrictEqual(
    [parts.allocator_in_use, parts.allocator_retained],
    [0, 0],
    'a share of malloc is stated as a fact'
  )
  assert.ok(parts.files > 0)
  assert.strictEqual(states['allocator-fragmentation'], 'unknown')
  // The agent reads the memory map after some seconds.
  if (notKnown !== null) assert.match(notKnown, /musl's malloc has no statistics of it|not read yet/)
}

/**
 * Apps of the lab, and the expected findings.
 * @type {[app: string, found?: string][]}
 */
const APPS = [
  ['js-heap-leak-jobs', 'js-heap-leak'],
  ['native-memory-leak', 'native-memory-leak'],
  // musl immediately returned the memory that glibc retains for this app. It is unknown whether
  // musl always does.
  ['allocator-fragmentation'],
  ['healthy-steady']
]

/**
 * @param {string} folder
 * @param {string} version
 * @returns {import('./rooms').Place}
 */
function muslPlace (folder, version) {
  return onMusl({
    folder: fs.mkdtempSync(path.join(folder, 'musl-')),
    system: fetchMusl(),
    node: fetchWheel(PLATFORM, version),
    root: ROOT,
    temporary: os.tmpdir()
  })
}

/** @type {import('./run').Platform} */
const musl = {
  title: 'musl (Alpine)',
  missing: () => whyNoRooms() ??
    (process.arch === 'x64' ? whyNotFetched() : 'only x64 is tried'),
  nodes: Object.keys(WHEELS[PLATFORM]),
  cases: folder => Object.keys(WHEELS[PLATFORM]).flatMap(version => {
    const place = muslPlace(folder, version)
    return [
      {
        title: 'the agent alone reports musl, GC hooks and the memory map; malloc has no ' +
          'statistics',
        node: version,
        async test () {
          const { hello, known, fields } = await tellFacts(place)
          assert.deepStrictEqual([hello.libc, hello.allocator], ['musl', 'musl'])
          assert.strictEqual(fields.has('allocatorBytes'), false)
          return known
        }
      },
      ...APPS.map(([app, found]) => ({
        title: `${app}: ${found ? 'found' : 'no memory problem is confirmed'}; ` +
          "malloc's memory is not divided",
        node: version,
        async test () {
          const told = await simulate(place, app, found)
          checkMalloc(told)
          assert.match(
            told.summaries['allocator-fragmentation'], /memory that musl's malloc retains is not visible/
          )
        }
      }))
    ]
  })
}

/** @returns {string | undefined} reason why the test is impossible without fetching */
const whyNoMusl = () => hasKept('musl') && hasKept(`node-24.19.0-${PLATFORM}`)
  ? undefined
  : 'Node.js for musl was not fetched (npm run test:platforms -- --only musl)'

module.exports = { musl, muslPlace, checkMalloc, whyNoMusl }

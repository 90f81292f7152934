'use strict'

/** The short form of `npm run test:platforms`, without fetching anything. */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { checkUnknown } = require('./no-proc')
const { checkMalloc, muslPlace, whyNoMusl } = require('./musl')
const { readOnly, whyNoRooms, withoutHome, withoutProc } = require('./rooms')
const { memwatch, read, report, tellFacts } = require('./tried')

const HERE = { node: process.execPath, root: path.join(__dirname, '../..') }
const RUN = ['run', '--for', '3', '--']
/**
 * Arguments of a run that lasts longer than the 5 s after which an exporter first measures itself.
 */
const RUN_LONGER = ['run', '--for', '6', '--']
const APP = ['-e', 'setInterval(() => Buffer.alloc(1e6), 50)']

/** @type {string} */
let folder
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-platforms-'))
  fs.chmodSync(folder, 0o755)
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * @param {string} title
 * @param {string | undefined} missing reason why the test is impossible on this machine
 * @param {() => Promise<unknown>} test
 */
const itWith = (title, missing, test) => it(title, async () => {
  if (missing) return process.stderr.write(`SKIPPED: ${title}: ${missing}\n`)
  await test()
}, 60_000)

const noRooms = whyNoRooms()

itWith('without /proc app and exporter go on, and what needs RSS is unknown', noRooms, async () => {
  const place = withoutProc(HERE)
  const [{ hello, fields }, told] = await Promise.all([
    tellFacts(place, 3),
    report(place, [...RUN_LONGER, HERE.node, ...APP]).then(read)
  ])
  expect(hello).toMatchObject({ libc: 'unknown', allocator: 'unknown' })
  expect([...fields].filter(name => name.startsWith('rss'))).toEqual([])
  checkUnknown(told)
})

itWith('with nothing writable memwatch run names TMPDIR, the exporter --socket', noRooms, async () => {
  const place = readOnly(HERE)
  const [run, exporter] = await Promise.all([
    memwatch(place, [...RUN, HERE.node, ...APP]).ended,
    memwatch(place, ['exporter', '--listen', '127.0.0.1:0']).ended
  ])
  expect([run.code, exporter.code]).toEqual([2, 2])
  expect(run.stderr).toMatch(/^memwatch: cannot create a folder in \S+: EROFS.*TMPDIR=/m)
  expect(exporter.stderr).toMatch(/^memwatch: --socket: cannot make \S+: .*EROFS/m)
  expect(run.stderr + exporter.stderr).not.toMatch(/\n\s+at /)
})

itWith('under a user without a home memwatch run judges', noRooms, async () => {
  const place = withoutHome(HERE, fs.mkdtempSync(path.join(folder, 'root-')))
  const { parts } = read(await report(place, [...RUN, place.node, ...APP]))
  expect(parts.files).toBeGreaterThan(0)
})

itWith(
  'on musl no share of malloc is stated as a fact', noRooms ?? whyNoMusl(),
  async () => {
    const place = muslPlace(folder, '24.19.0')
    checkMalloc(read(await report(place, [...RUN_LONGER, place.node, ...APP])))
  }
)

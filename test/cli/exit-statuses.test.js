'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { exitStatuses } = require('../../cli/exit-statuses')
const { startExporter } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')

const LEAK = path.join(__dirname, '../recordings/20-js-heap-leak-broken.ndjson.gz')

/** @type {string} */
let folder
/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-exit-statuses-'))
  exporter = await startExporter()
})
afterAll(async () => {
  await exporter.stop()
  fs.rmSync(folder, { recursive: true })
})

/** A file that is not a program. */
const data = () => {
  const file = path.join(folder, 'data')
  fs.writeFileSync(file, 'no program', { mode: 0o644 })
  return file
}

/** Rows of the table → commands that end with them. @type {[string, number, () => string[]][]} */
const CASES = [
  ['0', 0, () => ['plan', '--node', '22', '--memory', '512Mi']],
  ['0', 0, () => ['diagnose', LEAK]],
  ['0', 0, () => ['top', '--once', '--url', exporter.url]],
  ['1', 1, () => ['last-death', '--url', exporter.url]],
  ['2', 2, () => ['plan', '--node', '22', '--no-such-option']],
  ['2', 2, () => ['diagnose', path.join(folder, 'missing')]],
  ['2', 2, () => ['trim', 'nobody', '--url', exporter.url]],
  ['2', 2, () => ['top', '--once', '--url', 'http://127.0.0.1:1']],
  ['2', 2, () => ['completion', 'tcsh']],
  ['3', 3, () => ['diagnose', '--fail-on', 'suspected', LEAK]],
  ['4', 4, () => ['run', '--fail-on', 'undecided', '--', 'true']],
  ['5', 5, () => [
    'try', '--for', '2', '--with', 'BREAKS=1', '--keep', path.join(folder, 'runs'), '--',
    'sh', '-c', `test -z "$BREAKS" && exec '${process.execPath}' -e 'setTimeout(() => {}, 9000)'`
  ]],
  ['126, 127', 126, () => ['run', '--', data()]],
  ['126, 127', 127, () => ['run', '--', path.join(folder, 'missing')]],
  ['128 + N', 137, () => ['run', '--', 'sh', '-c', 'kill -9 $$']],
  ['other', 7, () => ['run', '--', 'sh', '-c', 'exit 7']]
]

describe('exit status', () => {
  it.each(CASES)('%s: %i', async (row, status, args) => {
    const { code, stderr } = await memwatch(args())
    expect({ code, stderr }).toEqual({ code: status, stderr: expect.any(String) })
  })

  it('is tested for every row of the table', () => {
    const tested = new Set(CASES.map(([row]) => row))
    expect([...tested]).toEqual(exitStatuses.map(({ status }) => status))
  })
})

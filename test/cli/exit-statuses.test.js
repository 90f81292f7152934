'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { exitStatuses } = require('../../cli/program/exit-statuses')
const { writeBaseline } = require('../../cli/gate/baseline')
const { gateRun } = require('../../cli/gate/gate-run')
const { failOnStatus } = require('../../cli/run')
const { environment } = require('../support/agent-collector')
const { defined } = require('../support/defined')
const { startExporter } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')

/** Options and a process that does nothing until it is ended. */
const IDLE = ['--for', '1', '--', process.execPath, '-e', 'setInterval(() => {}, 50)']
const LEAK = path.join(__dirname, '../recordings/20-js-heap-leak-broken.ndjson.gz')

/** @type {string} */
let folder
/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-exit-statuses-'))
  exporter = await startExporter()
  const { run, fit } = await gateRun({
    command: IDLE.slice(3),
    forSeconds: 1,
    folder,
    abort: new AbortController().signal,
    say: () => {},
    env: environment()
  }, 1)
  const { readings, ...rest } = defined(run)
  // Runs that vary by 100 MiB lead to no decision.
  const runs = [0, 1, 2].map(step => ({
    ...rest,
    readings: readings.map(reading =>
      ({ ...reading, heapBytes: reading.heapBytes + step * 100 * 2 ** 20 }))
  }))
  writeBaseline(baseline(), {
    command: IDLE.slice(3), load: null, forSeconds: 1, fit: defined(fit), runs
  })
})
afterAll(async () => {
  await exporter.stop()
  fs.rmSync(folder, { recursive: true })
})

const baseline = () => path.join(folder, 'baseline.json')

/** A file that is not a program. */
const data = () => {
  const file = path.join(folder, 'data')
  fs.writeFileSync(file, 'no program', { mode: 0o644 })
  return file
}

/**
 * Commands by the row of the table with their exit status.
 * @type {[string, number, () => string[]][]}
 */
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
  ['6', 6, () => ['gate', '--baseline', baseline(), '--runs', '1', ...IDLE]],
  ['7', 7, () => ['try', '--for', '2', '--keep', path.join(folder, 'none'), '--', 'true']],
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

describe('--fail-on', () => {
  const target = (/** @type {string} */ headline, /** @type {string[]} */ ...states) =>
    ({
      headline: { state: headline },
      verdicts: states.map(state => ({ state, opportunity: false }))
    })
  const status = (/** @type {object[]} */ targets, /** @type {string[]} */ deaths = []) =>
    failOnStatus(
      /** @type {any} */ ({ targets, deaths: deaths.map(reason => ({ reason })) }), 'confirmed'
    )

  it('is 4 unless a check of a process has a result', () => {
    expect(status([])).toBe(4)
    expect(status([target('undecided')])).toBe(4)
    expect(status([target('undecided', 'unknown', 'unknown')])).toBe(4)
    expect(status([target('undecided', 'unknown'), target('ok', 'unknown', 'ok')])).toBeUndefined()
  })
  it('is 3 for a process that ran out of memory, whatever its verdicts', () => {
    expect(status([target('ok', 'ok')], ['clean', 'oom_kill'])).toBe(3)
    expect(status([], ['heap_oom'])).toBe(3)
    expect(status([target('ok', 'ok')], ['clean'])).toBeUndefined()
  })
})

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { compare } = require('../../cli/comparison/compare')
const { figureNames } = require('../../cli/comparison/figures')
const { measure, recordingsAt } = require('../../cli/comparison/measure')
const { rssAfterLoad } = require('../../cli/comparison/quiet-part')
const { spreadOf, isApart } = require('../../cli/comparison/spread')
const { isApplied } = require('../../engine/verdicts/applied')
const { renderComparison } = require('../../cli/comparison/render')
const { terminalText: shown } = require('../../cli/text/terminal')
const { outcomeOf } = require('../../engine/verdicts/outcome')
const { memwatch } = require('../support/memwatch')
const { defined } = require('../support/defined')

const MIB = 2 ** 20
const recording = name => path.join(__dirname, '../recordings', `${name}.ndjson.gz`)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-compare-test-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string} app
 * @param {Parameters<typeof measure>[1]} [options]
 */
const both = async (app, options) => [
  await measure(recording(`${app}-broken`), options),
  await measure(recording(`${app}-fixed`), options)
]
/**
 * @param {import('../../cli/comparison/compare').Comparison} comparison
 * @param {string} figure
 */
const row = ({ rows }, figure) => defined(rows.find(row => row.figure === figure))

describe('two recordings', () => {
  it('show the effect of a flag beside its prediction', async () => {
    const [before, after] = await both('20-semi-space-starvation')
    const comparison = compare([before], [after])
    expect(row(comparison, 'scavengesPerSecond').changeRatio).toBeLessThan(-0.9)
    const { before: was, after: is } = row(comparison, 'semiSpaceBytes')
    expect([was, is].map(spread => Math.round(defined(spread).median / MIB))).toEqual([1, 31])
    expect(row(comparison, 'peakRssBytes').changeRatio).toBeGreaterThan(0)
    expect(comparison.rows.map(({ figure }) => figure)).not.toContain('requests')
    expect(comparison.fix).toMatchObject({
      diagnosis: 'semi-space-starvation',
      applied: true,
      change: { flag: '--max-semi-space-size=32' }
    })
    expect(defined(comparison.fix).outcomes.map(({ signal, good }) => [signal, good])).toEqual([
      ['gcPauseRatio', true],
      ['scavengesPerSecond', true],
      ['rssBytes', true]
    ])
    expect(comparison.verdicts).toEqual([
      { diagnosis: 'semi-space-starvation', change: 'gone', before: 1, after: 0 }
    ])
    expect(JSON.parse(JSON.stringify(comparison))).toEqual(comparison)
  })
  it('show the effect of another allocator, and that it was loaded', async () => {
    const [before, after] = await both('20-allocator-fragmentation-http')
    const comparison = compare([before], [after])
    expect(comparison.before.runs[0]).toMatchObject({
      allocator: 'glibc',
      primary: 'allocator-fragmentation'
    })
    expect(comparison.after.runs[0]).toMatchObject({ allocator: 'jemalloc', primary: null })
    expect(row(comparison, 'rssAfterLoadBytes').changeRatio).toBeLessThan(-0.5)
    expect(comparison.fix).toMatchObject({ title: 'Use jemalloc', applied: true })
  })
  it('do not claim a change of code, or a change that was not applied', async () => {
    const [before, after] = await both('24-array-buffer-pile-up-jobs')
    expect(defined(compare([before], [after]).fix).applied).toBeNull()
    const [starved] = await both('20-semi-space-starvation')
    const same = compare([starved], [starved])
    expect(defined(same.fix).applied).toBe(false)
    expect(shown(renderComparison(same))).not.toContain('differ in length')
    expect(same.verdicts).toEqual([
      { diagnosis: 'semi-space-starvation', change: 'stayed', before: 1, after: 1 }
    ])
    expect(shown(renderComparison(same))).toMatch(
      /NOT in effect in the runs after[^]*from 325\/s to [\d.]+\/s, measured 325\/s: no such effect/
    )
  })
  it.each([
    [74, 'as predicted'],
    // Good enough to count as fixed; the text still says by how much it differs.
    [120, '79 % of the predicted effect'],
    [0, '113 % of the predicted effect']
  ])('say how much of a predicted effect was measured: %d', async (measured, text) => {
    const [starved] = await both('20-semi-space-starvation')
    const comparison = compare([starved], [starved])
    const fix = defined(comparison.fix)
    const outcomes = [{ ...fix.outcomes[0], from: 400, to: 46, measured, good: true }]
    expect(shown(renderComparison({ ...comparison, fix: { ...fix, outcomes } })))
      .toContain(`: ${text}`)
  })
  it('are compared per request if requests are counted, with scaled predictions', async () => {
    const [before] = await both('20-semi-space-starvation', { work: { requests: 10_000 } })
    const twice = { ...before, work: { requests: 20_000 } }
    const comparison = compare([before], [twice])
    expect(defined(row(comparison, 'cpuPerRequestSeconds').before).median).toBeCloseTo(
      defined(before.figures.cpuSeconds) / 10_000
    )
    const [ratio, , rss] = defined(comparison.fix).outcomes
    const [plain, , plainRss] = defined(compare([before], [before]).fix).outcomes
    expect(ratio.measured).toBeCloseTo(plain.measured / 2)
    expect(rss.measured).toBe(plainRss.measured)
  })
  it('are compared by processes with the same name', async () => {
    const target = defined((await measure(recording('20-js-heap-leak-worker-broken'))).target)
    expect(target.thread).not.toBe('main')
    const other = await measure(recording('20-js-heap-leak-worker-broken'), {
      diagnosis: 'semi-space-starvation'
    })
    expect(other.target?.thread).toBe('main')
    const after = await measure(recording('20-js-heap-leak-worker-fixed'), { like: target })
    expect([after.target?.name, after.target?.thread]).toEqual([target.name, target.thread])
  })
})

describe('several runs on each side', () => {
  const none = Object.fromEntries(figureNames.map(name => [name, null]))
  const runs = values =>
    values.map(value => ({
      file: 'x',
      command: [],
      exit: null,
      cut: false,
      work: {},
      target: null,
      figures: { ...none, peakRssBytes: value === null ? null : value * MIB }
    }))
  it.each([
    ['apart', [10, 11, 12], [13, 14, 15], true],
    ['touching', [10, 11, 13], [13, 14, 15], false],
    ['one in the other', [10, 20], [12, 13], false],
    ['one run', [10], [20, 21], null],
    ['none', [null], [1, 2], null]
  ])('whose ranges are %s', (_, before, after, apart) => {
    expect(isApart(spreadOf(before), spreadOf(after))).toBe(apart)
  })
  it('are summarized by median and range, without a difference that is within noise', () => {
    const text = shown(renderComparison(compare(runs([100, 300, 200]), runs([150, 250]))))
    expect(text).toMatch(/Peak RSS +200 MiB \(100 MiB – 300 MiB\) +200 MiB \(150 MiB – 250 MiB\)/)
    expect(shown(renderComparison(compare(runs([100, 300, 200]), runs([150, 290]))))).toContain(
      '+10 %, no difference beyond noise'
    )
    expect(shown(renderComparison(compare(runs([100, 110]), runs([200, 220]))))).toMatch(
      /\+100 %$/m
    )
    expect(shown(renderComparison(compare(runs([100, null]), runs([0, 0]))))).toMatch(
      /Peak RSS +100 MiB \(in 1 of 2\) +0 MiB/
    )
    expect(shown(renderComparison(compare(runs([100]), runs([200]))))).toContain(
      'One run each: the table cannot separate the effect from noise.'
    )
  })
})

describe('RSS after load', () => {
  /**
   * Creates a run with one entry per second.
   * @param {[seconds: number, cores: number, mib: number, loop?: number][]} parts
   */
  const run = parts => {
    const of = { seconds: [0], rssBytes: [50 * MIB], cpuSeconds: [0], loopSeconds: [0] }
    for (const [seconds, cores, mib, loop = cores] of parts) {
      for (let i = 0; i < seconds; i++) {
        of.seconds.push(defined(of.seconds.at(-1)) + 1)
        of.cpuSeconds.push(defined(of.cpuSeconds.at(-1)) + cores)
        of.loopSeconds.push(defined(of.loopSeconds.at(-1)) + loop)
        of.rssBytes.push(mib * MIB)
      }
    }
    const rssBytes = rssAfterLoad(of)
    return rssBytes && rssBytes / MIB
  }
  it.each([
    [
      'is that of the later half of the quiet time at the end',
      [
        [20, 1, 400],
        [4, 0.01, 400],
        [8, 0.01, 100]
      ],
      100
    ],
    [
      'is unknown if the load lasts to the end',
      [
        [5, 0.01, 50],
        [20, 1, 400]
      ],
      null
    ],
    [
      'is unknown before the load',
      [
        [10, 0.01, 50],
        [20, 1, 400],
        [3, 0.01, 90]
      ],
      null
    ],
    [
      'is known after five quiet seconds',
      [
        [20, 1, 400],
        [5, 0.01, 100]
      ],
      100
    ],
    [
      'outlives one busy second',
      [
        [20, 1, 400],
        [5, 0.01, 100],
        [1, 0.9, 100],
        [5, 0.01, 100]
      ],
      100
    ],
    [
      'is that of the last quiet time if load comes in rounds',
      [
        [20, 1, 400],
        [8, 0.01, 100],
        [20, 1, 400],
        [8, 0.01, 200],
        [5, 1, 400]
      ],
      200
    ],
    [
      'is unknown if others take the CPU from a busy loop',
      [
        [20, 0.9, 400],
        [10, 0.1, 400, 0.9]
      ],
      null
    ],
    ['is unknown without any load', [[60, 0.01, 50]], null]
  ])('%s', (_, parts, mib) =>
    expect(run(/** @type {Parameters<typeof run>[0]} */ (parts))).toBe(mib)
  )
})

describe('a change', () => {
  /** The fields of a hello that a comparison reads. */
  const hello = /** @type {import('@memwatch/agent/protocol/frame').Hello} */ (/** @type {unknown} */ ({ execArgv: [], nodeOptions: [], mallocEnv: {}, allocator: 'glibc' }))
  it.each([
    [
      'a flag of NODE_OPTIONS',
      { flag: '--max-semi-space-size=16' },
      { nodeOptions: ['--max_semi_space_size=16'] },
      true
    ],
    [
      'a flag with another value',
      { flag: '--max-semi-space-size=16' },
      { execArgv: ['--max-semi-space-size', '8'] },
      false
    ],
    [
      'a variable',
      { env: { MALLOC_ARENA_MAX: '2' } },
      { mallocEnv: { MALLOC_ARENA_MAX: '2' } },
      true
    ],
    [
      'a library that the loader did not find',
      { env: { LD_PRELOAD: 'libjemalloc.so.2' } },
      { mallocEnv: { LD_PRELOAD: 'libjemalloc.so.2' } },
      false
    ],
    [
      'NODE_OPTIONS',
      { env: { NODE_OPTIONS: '--a=1 --b' } },
      { nodeOptions: ['--b', '--c', '--a=1'] },
      true
    ],
    [
      'a variable that no agent reports',
      { env: { MALLOC_ARENA_MAX: '2', UV_USE_IO_URING: '0' } },
      { mallocEnv: { MALLOC_ARENA_MAX: '2' } },
      null
    ],
    ['code', { code: 'buffer.transfer(0)' }, {}, null]
  ])('by %s is in force or not', (_, change, own, applied) =>
    expect(isApplied(change, { ...hello, ...own })).toBe(applied)
  )

  it.each([
    ['within a quarter of the effect', 50, 60, true],
    ['beyond it', 50, 63, false]
  ])('is as predicted %s', (_, to, measured, good) => {
    expect(
      outcomeOf({ signal: 'rssBytes', name: 'RSS', unit: 'bytes', from: 100, to }, 100, measured).good
    ).toBe(good)
  })
})

describe('memwatch compare', () => {
  it('prints the table, and JSON with --json', async () => {
    const files = [
      recording('20-semi-space-starvation-broken'),
      recording('20-semi-space-starvation-fixed')
    ]
    const { code, stdout } = await memwatch(['compare', ...files])
    expect(code).toBe(0)
    expect(stdout).toMatch(/before +after +change/)
    expect(stdout).toMatch(/GC events, all kinds +13759 +274 +−98 %/)
    expect(stdout).toMatch(/semi-space-starvation has disappeared/)
    // The recordings last 40 and 30 seconds.
    expect(stdout).toContain('The runs differ in length')
    const json = await memwatch(['compare', '--json', ...files])
    expect(JSON.parse(json.stdout)).toMatchObject({ schema: 1, verdicts: [{ change: 'gone' }] })
  })
  it('accepts folders of several runs, in the order of their numbers', async () => {
    for (const name of ['10.ndjson.gz', '9.ndjson.gz', '9.out']) {
      fs.copyFileSync(recording('20-semi-space-starvation-broken'), path.join(folder, name))
    }
    expect(recordingsAt(folder).map(file => path.basename(file))).toEqual([
      '9.ndjson.gz',
      '10.ndjson.gz'
    ])
    const { code, stdout } = await memwatch([
      'compare',
      folder,
      recording('20-semi-space-starvation-fixed')
    ])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining('Medians of 2 and 1 runs')
    })
  })
  it.each([
    ['is not there', '/no/such/file', /no such file/],
    ['is no recording', __filename, /expected a recording of memwatch/],
    ['is a folder without recordings', __dirname, /expected recordings, got no file that ends in/]
  ])('ends with 2 where a file %s', async (_, file, message) => {
    const { code, stderr } = await memwatch(['compare', file, file])
    expect(stderr).toMatch(message)
    expect(code).toBe(2)
  })
})

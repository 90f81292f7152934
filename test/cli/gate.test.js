'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const {
  refusedByFit, refusedByPlan, warningsOf, readBaseline, writeBaseline
} = require('../../cli/gate/baseline')
const { toJunit } = require('../../cli/gate/junit')
const { choosePer, isMeasurable, measureRun } = require('../../cli/gate/measures')
const { decide } = require('../../cli/gate/sequential-test')
const { judge } = require('../../cli/gate')
const { gateRun } = require('../../cli/gate/gate-run')
const { defined } = require('../support/defined')
const { memwatch } = require('../support/memwatch')
const { seeded } = require('../support/random')

const LOOKS = 5
const BASELINE_RUNS = 8

/**
 * Makes decisions like the command: run by run, until one is final.
 * @param {Record<string, number>[]} baseline
 * @param {() => Record<string, number>} next run
 * @param {{ rate: number, tolerances: Record<string, number> }} options
 */
function gate (baseline, next, { rate, tolerances }) {
  const runs = []
  for (let look = 1; look <= LOOKS; look++) {
    runs.push(next())
    const { outcome } = decide(baseline, runs, { looks: LOOKS, rate, tolerances })
    if (outcome !== 'undecided') return { outcome, runs: look }
  }
  return { outcome: 'undecided', runs: LOOKS }
}

/**
 * Simulates gates and counts their outcomes.
 * @param {{ rate: number, shift: number, trials?: number, tolerance?: number,
 *   noise?: (random: ReturnType<typeof seeded>) => number }} options shift and tolerance in
 *   standard deviations of a run
 */
function simulate ({
  rate, shift, trials = 1000, tolerance = 0, noise = ({ normal }) => normal()
}) {
  const random = seeded(7)
  const tolerances = { a: tolerance, b: tolerance, c: tolerance }
  const run = (/** @type {number} */ more) => {
    const [a, b, c] = [0, 0, 0].map(() => noise(random))
    return { a: a + more, b, c }
  }
  const counts = { pass: 0, worse: 0, undecided: 0, runs: 0 }
  for (let trial = 0; trial < trials; trial++) {
    const baseline = Array.from({ length: BASELINE_RUNS }, () => run(0))
    const { outcome, runs } = gate(baseline, () => run(shift), { rate, tolerances })
    counts[outcome] += 1 / trials
    counts.runs += runs / trials
  }
  return counts
}

describe('the sequential test, simulated', () => {
  it('raises at most the given rate of false alarms at the edge of the tolerance', () => {
    const { worse } = simulate({ rate: 0.05, shift: 0 })
    expect(worse).toBeLessThan(0.05)
    expect(worse).toBeGreaterThan(0.002) // Wrong decisions do occur: the simulation is not trivial.
  })
  it('raises fewer false alarms in the middle of the tolerance, and passes', () => {
    const { worse, pass, runs } = simulate({ rate: 0.01, shift: 0, tolerance: 6 })
    expect(worse).toBeLessThan(0.002)
    expect(pass).toBeGreaterThan(0.75)
    expect(runs).toBeLessThan(LOOKS)
  })
  it('misses at most the given rate of changes that exceed the tolerance', () => {
    expect(simulate({ rate: 0.05, shift: 3.001, tolerance: 3 }).pass).toBeLessThan(0.05)
  })
  it('finds more changes, the more they exceed the tolerance', () => {
    const power = [2, 5, 8, 12].map(shift => simulate({ rate: 0.01, shift, trials: 200 }).worse)
    expect(power).toEqual(power.toSorted((a, b) => a - b))
    expect(power[0]).toBeLessThan(0.5)
    expect(power[3]).toBeGreaterThan(0.95)
  })
  it('stays within the rate if runs alternate between two levels', () => {
    const noise = ({ uniform }) => (uniform() < 0.8 ? 0 : 1) + 0.01 * uniform()
    expect(simulate({ rate: 0.01, shift: 0, tolerance: 1.05, noise }).worse).toBeLessThan(0.01)
  })
  it('never decides "worse" after a single run', () => {
    const baseline = [{ a: 0 }, { a: 1 }, { a: 2 }]
    const options = { looks: 3, rate: 0.2, tolerances: { a: 1 } }
    expect(decide(baseline, [{ a: 1e9 }], options).outcome).toBe('undecided')
    expect(decide(baseline, [{ a: 1e9 }, { a: 1e9 }], options).outcome).toBe('worse')
  })
})

/**
 * A run of 30 readings: the heap fills in a third, then grows from GC to GC.
 * @param {{ growth?: number, external?: number, requests?: number | null }} [options] bytes per GC
 */
const runOf = ({ growth = 0, external = 0, requests = 3000 } = {}) => ({
  seconds: 30,
  cpuSeconds: 3,
  requests,
  allocatedBytes: null,
  readings: Array.from({ length: 30 }, (_, i) => ({
    seconds: i + 1,
    cpuSeconds: (i + 1) / 10,
    majors: i + 1,
    heapBytes: 5e6 + 1e5 * Math.min(i, 10) + growth * i + (i % 3) * 500,
    externalBytes: 2e6 + external * i
  }))
})

describe('the measures of a run', () => {
  it('exclude the warm-up, and divide growth by the work', () => {
    const { heapGrowth, externalGrowth, heapLevel } =
      measureRun(runOf({ growth: 10_000, external: 500 }), 'request')
    expect(heapGrowth).toBeCloseTo(100, 0)
    expect(externalGrowth).toBeCloseTo(5, 5)
    expect(heapLevel).toBeGreaterThan(6e6)
  })
  it('are per request only if all runs count requests', () => {
    expect(choosePer([runOf(), runOf()])).toBe('request')
    expect(choosePer([runOf(), runOf({ requests: null })])).toBe('cpuSecond')
    const allocating = { ...runOf({ requests: null }), allocatedBytes: 1e9 }
    expect(choosePer([allocating, allocating])).toBe('allocatedMiB')
  })
  it('need eight readings after warm-up', () => {
    const cut = (/** @type {number} */ count) => ({ ...runOf(), readings: runOf().readings.slice(0, count) })
    expect([isMeasurable(cut(11)), isMeasurable(cut(12))]).toEqual([false, true])
  })
  it.each([
    ['heap', { growth: 40_000 }, 'heapGrowth'],
    ['Buffers', { external: 40_000 }, 'externalGrowth']
  ])('find a leak of the %s', (_, leak, measure) => {
    const was = [runOf(), runOf({ growth: 300 }), runOf({ growth: 100, external: 50 })]
    const { outcome, compared } =
      judge(was, [runOf(leak), runOf(leak)], { runs: 3, rate: 0.01 })
    expect(outcome).toBe('worse')
    expect(compared.filter(row => row.outcome === 'worse').map(row => row.measure)).toContain(measure)
    expect(judge(was, [runOf({ growth: 200 })], { runs: 3, rate: 0.01 }).outcome).toBe('pass')
  })
})

describe('a baseline', () => {
  const fit = {
    node: '22.1.0',
    platform: 'linux-x64',
    libc: 'glibc',
    flags: ['--max-old-space-size=256'],
    heapSizeLimitBytes: 300e6,
    containerLimitBytes: null,
    cores: 2
  }

  it.each([
    [{ node: '24.0.0' }, 'Node.js 22.1.0, and this is 24.0.0'],
    [{ libc: 'musl' }, 'linux-x64 with glibc, and this is linux-x64 with musl'],
    [{ flags: [] }, 'flags were --max-old-space-size=256, and are now none'],
    [{ heapSizeLimitBytes: 200e6 }, 'heap size limit was 286 MiB, and is now 191 MiB'],
    [{ containerLimitBytes: 2 ** 29 }, 'container had no limit, and this one 512 MiB']
  ])('of another process is refused: %j', (other, text) => {
    expect(refusedByFit(fit, { ...fit, ...other })).toEqual([expect.stringContaining(text)])
    expect(refusedByFit(fit, fit)).toEqual([])
  })
  it('is refused if load or length differ; another command or machine is a warning', () => {
    const baseline = /** @type {any} */ ({ load: null, forSeconds: 30, command: ['node', 'a.js'], fit })
    expect(refusedByPlan(baseline, { load: 'wrk x', forSeconds: 60 })).toEqual([
      'its runs lasted 30 s, and these last 60 s: --for 30', 'its --load was none, and is now wrk x'
    ])
    expect(refusedByPlan(baseline, { load: null, forSeconds: 30 })).toEqual([])
    expect(warningsOf(baseline, { command: ['node', 'b.js'], fit: { ...fit, cores: 4 } })).toEqual([
      'the command of the baseline was node a.js',
      'the baseline had 2 cores, and this machine has 4'
    ])
  })
  it.each([
    ['no JSON', 'x', 'cannot read'],
    ['another file', '{}', 'is no baseline'],
    ['another version', '{"memwatch":"gate-baseline","version":9}', 'version 9'],
    ['a damaged one', '{"memwatch":"gate-baseline","version":1,"runs":[]}', 'is damaged']
  ])('that is %s is refused', (_, content, text) => {
    const file = path.join(fs.mkdtempSync(path.join(folder, 'bad-')), 'baseline.json')
    fs.writeFileSync(file, content)
    expect(() => readBaseline(file)).toThrow(text)
  })
})

it('JUnit has a case for each measure, and none is silently green', () => {
  const row = {
    measure: 'heapGrowth', baseline: 1, candidate: 900, difference: 899, tolerance: 100, lower: 800, upper: 1000
  }
  const result = /** @type {any} */ ({ outcome: 'worse', reason: null, per: 'request', seconds: 4, compared: [] })
  const compared = ['worse', 'undecided', 'pass'].map(outcome => ({ ...row, outcome }))
  const xml = toJunit({ ...result, compared })
  expect(xml).toContain('tests="3" failures="1" errors="1"')
  expect(xml).toContain('900 B per request, in the baseline 1 B; at least 800 B more')
  const failed = toJunit({ ...result, outcome: 'failed', reason: 'Run 1: its <status> is "1"\x1b.' })
  expect(failed).toContain('tests="1" failures="0" errors="1"')
  expect(failed).toContain('&#60;status&#62; is &#34;1&#34;\\x1b')
})

/** @type {string} */
let folder
beforeAll(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-gate-test-')) })
afterAll(() => fs.rmSync(folder, { recursive: true }))

describe('memwatch gate', () => {
  // An app with one job in each turn of its loop: on a slow machine it does the same work later.
  const APP = `
    const kept = []
    let requests = 0
    const work = () => {
      for (let i = 0; i < 5; i++, requests++) if (process.env.LEAK) kept.push(new Array(500).fill(1.5))
    }
    setInterval(work, 20)
    process.on('SIGTERM', () => { console.log(JSON.stringify({ requests })); process.exit() })`
  const args = (/** @type {string[]} */ ...more) =>
    [...more, '--for', '1', '--', process.execPath, '-e', APP]

  it('passes the same app, finds a leak, and refuses a baseline of another length', async () => {
    const baseline = path.join(folder, 'main.json')
    const junit = path.join(folder, 'gate.xml')
    const command = [process.execPath, '-e', APP]
    const abort = new AbortController().signal
    const plan = { command, forSeconds: 1, folder, abort, say: () => {} }
    const { run, fit } = await gateRun(plan, 1)
    // The test uses one run three times, which saves the time of two runs.
    writeBaseline(baseline, {
      command, load: null, forSeconds: 1, fit: defined(fit), runs: Array(3).fill(defined(run))
    })
    const tolerant = ['gate', '--baseline', baseline, '--tolerate-growth', '1000', '--tolerate-heap', '8Mi']
    const same = await memwatch([...tolerant, '--junit', junit, ...args()])
    expect(same).toMatchObject({
      code: 0, stdout: expect.stringContaining('Pass'), stderr: expect.not.stringContaining('fit')
    })
    expect(fs.readFileSync(junit, 'utf8')).toContain('tests="3" failures="0" errors="0"')
    const other = await memwatch(['gate', '--baseline', baseline, '--for', '9', '--', 'node', 'x'])
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('does not fit') })
    process.env.LEAK = '1'
    try {
      const leak = await memwatch([...tolerant, '--json', ...args()])
      expect(leak.code).toBe(3)
      const { outcome, per, compared, runs } = JSON.parse(leak.stdout)
      expect({ outcome, per, runs }).toEqual({ outcome: 'worse', per: 'request', runs: expect.any(Number) })
      expect(compared[0]).toMatchObject({ measure: 'heapGrowth', outcome: 'worse' })
      expect(compared[0].candidate).toBeGreaterThan(2000)
    } finally {
      delete process.env.LEAK
    }
  }, 120_000)

  it.each([
    [['--', 'node', 'x'], 'expected one of --baseline FILE and --write-baseline FILE'],
    [['--baseline', '/missing/x', '--', 'node', 'x'], 'no such file'],
    [['--write-baseline', '/dev/null', '--runs', '2', '--', 'node'], 'from 3 to 100'],
    [['--write-baseline', '/dev/null', '--false-alarms', '50%', '--', 'node'], 'from 0.01% to 20%'],
    [['--write-baseline', '/dev/null', '--tolerate-growth', 'x', '--', 'node'], 'expected bytes']
  ])('refuses %j', async (words, text) => {
    const { code, stderr } = await memwatch(['gate', ...words])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(text) })
  })
  it.each([
    ['a command that is no Node.js process', 4, ['true'], 'No Node.js process'],
    ['a command that fails', 5, ['sh', '-c', 'exit 7'], 'its status is 7'],
    ['a missing command', 127, ['/missing/command'], 'no such command']
  ])('says so of %s', async (_, status, words, text) => {
    const file = path.join(folder, `none-${status}.json`)
    const { code, stdout, stderr } =
      await memwatch(['gate', '--write-baseline', file, '--for', '1', '--', ...words])
    expect(code).toBe(status)
    expect(stdout + stderr).toContain(text)
  })
})

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { describeWithTools } = require('../support/tools')
const { MEMWATCH } = require('../support/memwatch')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-lab-test-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * Runs a lab app, and returns its main thread from the report.
 * @param {string} app
 * @param {string[]} [options]
 * @param {{ env?: object, confirmed?: string }} [of] confirmed: the run ends once this diagnosis is
 *   confirmed, at any speed of the machine
 */
async function simulate (app, options = [], { env = {}, confirmed } = {}) {
  const file = path.join(folder, `${app}-${options.length}-${Object.keys(env).length}.json`)
  const child = spawn(process.execPath, [MEMWATCH, 'simulate', app, '--report', file, ...options], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  let events = ''
  child.stderr.on('data', data => {
    events += data
    if (confirmed && events.includes(`main: ${confirmed} confirmed:`)) child.kill('SIGINT')
  })
  await once(child, 'exit')
  return JSON.parse(fs.readFileSync(file, 'utf8')).targets.find(({ thread }) => thread === 'main')
}
const stateOf = (target, id) => target.verdicts.find(({ diagnosis }) => diagnosis === id).state

// The apps run in two lanes, for two cores, one app at a time in each lane.
describeWithTools('lab apps, live', () => {
  /** @type {Record<string, Promise<any>>} */
  const runs = {}
  beforeAll(async () => {
    runs.leak = simulate('js-heap-leak', ['--for', '240'], { confirmed: 'js-heap-leak' })
    const inTurn = async () => {
      // On a slow machine V8's semi-space of 1 MiB in this container is a finding of its own.
      runs.cache = simulate('healthy-cache-fill', [], {
        env: { NODE_OPTIONS: '--max-semi-space-size=16' }
      })
      await runs.cache
      runs.fragmenting = simulate('allocator-fragmentation', ['--for', '240'], {
        confirmed: 'allocator-fragmentation'
      })
      const [fix] = (await runs.fragmenting).primary?.fix ?? [{ change: { env: {} } }]
      runs.fixed = simulate('allocator-fragmentation', ['--for', '40'], { env: fix.change.env })
      await runs.fixed
    }
    // Light apps, which run beside the others.
    const light = async () => {
      for (const app of ['event-loop-blocked-jobs', 'context-leak', 'resource-leak-jobs']) {
        await (runs[app] = simulate(app))
      }
    }
    await Promise.all([runs.leak, inTurn(), light()])
  }, 420_000)

  it('a leak is confirmed while the process lives, with the remaining time', async () => {
    const { primary } = await runs.leak
    expect(primary).toMatchObject({
      diagnosis: 'js-heap-leak',
      state: 'confirmed',
      severity: 'critical'
    })
    expect(primary.evidence.map(({ signal }) => signal)).toContain('liveHeapGrowthBytesPerSecond')
    expect(primary.impact).toMatch(/dies in about/)
    expect(primary.ruledOut.map(({ diagnosis }) => diagnosis)).toContain('allocator-fragmentation')
  })

  it.each([
    ['event-loop-blocked', 'event-loop-blocked-jobs', /calls that wait/],
    ['context-leak', 'context-leak', /V8 contexts are alive/]
  ])('%s is confirmed with its details', async (id, app, text) => {
    const { primary } = await runs[app]
    expect(primary).toMatchObject({
      diagnosis: id,
      state: 'confirmed',
      summary: expect.stringMatching(text)
    })
  })

  it('timers, which may be timeouts, are only suspected', async () => {
    const target = await runs['resource-leak-jobs']
    expect(target.primary).toBeNull()
    // On a busy machine the summary names another reason.
    const { state, summary, evidence } =
      target.verdicts.find(({ diagnosis }) => diagnosis === 'resource-leak')
    expect({ state, summary }).toEqual({
      state: 'suspected', summary: expect.stringMatching(/active timers/)
    })
    expect(evidence.map(({ text }) => text).join('\n')).toMatch(/They may be timeouts that wait/)
  })

  it('a cache that fills up is no finding', async () => {
    expect((await runs.cache).primary).toBeNull()
  })

  it('freed memory that malloc retains is no leak, and leads to another allocator', async () => {
    const target = await runs.fragmenting
    expect(target.primary).toMatchObject({
      diagnosis: 'allocator-fragmentation',
      state: 'confirmed'
    })
    expect(target.primary.fix[0].change.env).toHaveProperty('LD_PRELOAD')
    expect(stateOf(target, 'js-heap-leak')).not.toBe('confirmed')
  })

  it('with that allocator the app has no finding', async () => {
    const { verdicts } = await runs.fixed
    // On a slow machine the app's own synchronous work is a true finding.
    expect(verdicts.filter(({ diagnosis, state, opportunity }) =>
      state === 'confirmed' && !opportunity && diagnosis !== 'event-loop-blocked')).toEqual([])
    expect(stateOf({ verdicts }, 'allocator-fragmentation')).toBe('ok')
  })
})

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { replayFile } = require('../../cli/sources/replay-file')
const { findCase } = require('../../engine/verdicts/case')
const { judgeArrival } = require('../../engine/verdicts/arrival')
const { findAttempts, judgeFollowUp } = require('../../engine/verdicts/follow-up')
const { decodeRecord } = require('../../exporter/flight/decode-record')
const { FlightRecorder } = require('../../exporter/flight/flight-recorder')
const { FollowUps } = require('../../exporter/follow-ups/follow-ups')
const { readRelease } = require('../../exporter/follow-ups/release')
const { Deaths } = require('../../exporter/deaths/deaths')
const { Targets } = require('../../engine/history/targets')
const { startExporter, eventually } = require('../support/exporter')
const { environment, spawnWatched } = require('../support/agent-collector')
const { tellRecording } = require('../support/recorded-agent')
const { defined } = require('../support/defined')

const MIB = 2 ** 20

/** @param {Partial<import('../../engine/verdicts/arrival').Setup>} [changes] */
const setup = changes => ({
  nodeOptions: [],
  execArgv: [],
  mallocEnv: {},
  libc: /** @type {const} */ ('glibc'),
  allocator: /** @type {const} */ ('glibc'),
  node: '20.20.2',
  pointerCompression: false,
  memoryLimitBytes: 512 * MIB,
  release: 'a',
  parents: [],
  ...changes
})

const FLAG = { flag: '--max-semi-space-size=16', env: { NODE_OPTIONS: '--max-semi-space-size=16' } }
const HEAP = { flag: '--max-old-space-size=400 --max-semi-space-size=16' }
const LIBRARY = { env: { LD_PRELOAD: 'libjemalloc.so.2', MALLOC_CONF: 'narenas:2' } }
const LOADED = { allocator: /** @type {const} */ ('jemalloc'), allocatorPath: '/usr/lib/libjemalloc.so.2' }
const ARENAS = { env: { MALLOC_ARENA_MAX: '2' } }
const LIMIT = { memoryLimitBytes: 768 * MIB }

describe('an advised change', () => {
  /** @type {[string, object, object, object][]} */
  const arrived = [
    ['a flag in NODE_OPTIONS', FLAG, {}, { nodeOptions: ['--max-semi-space-size=16'] }],
    ['a flag with underscores', FLAG, {}, { execArgv: ['--max_semi_space_size', '16'] }],
    ['a flag that replaces another value', FLAG,
      { execArgv: ['--max-semi-space-size=1'] }, { execArgv: ['--max-semi-space-size=16'] }],
    ['a size that another process of the workload was advised', HEAP, {},
      { execArgv: ['--max-old-space-size=410', '--max-semi-space-size=16'] }],
    ['each of two flags', HEAP, {},
      { execArgv: ['--max-old-space-size=400'], nodeOptions: ['--max-semi-space-size=16'] }],
    ['a flag and a limit', { ...FLAG, ...LIMIT }, {},
      { nodeOptions: ['--max-semi-space-size=16'], memoryLimitBytes: 768 * MIB }],
    ['a library that is loaded', LIBRARY, {},
      { ...LOADED, mallocEnv: { LD_PRELOAD: '/usr/lib/libjemalloc.so.2' } }],
    ['a variable', ARENAS, {}, { mallocEnv: { MALLOC_ARENA_MAX: '2' } }],
    ['a limit that was raised far enough', LIMIT, {}, { memoryLimitBytes: 760 * MIB }],
    ['a limit that was lifted', LIMIT, {}, { memoryLimitBytes: null }]
  ]
  it.each(arrived)('arrives as %s', (_, change, before, after) => {
    expect(judgeArrival(change, setup(before), setup(after))).toEqual({ kind: 'arrived' })
  })

  /** @type {[string, object, object, object, RegExp][]} */
  const lost = [
    ['the command line overrides NODE_OPTIONS', FLAG, { execArgv: ['--max-semi-space-size=4'] },
      { nodeOptions: ['--max-semi-space-size=16'], execArgv: ['--max-semi-space-size=4'] },
      /^NODE_OPTIONS sets .*=16, but the command line sets .*=4 after it, which overrides it$/],
    ['a later option overrides it', FLAG, {},
      { nodeOptions: ['--max-semi-space-size=16', '--max-semi-space-size=2'] }, /=2 after it/],
    ['its value is lower', FLAG, {}, { nodeOptions: ['--max-semi-space-size=8'] },
      /^--max-semi-space-size is 8, below the advised 16$/],
    ['its value is lower than that of before', FLAG, { execArgv: ['--max-semi-space-size=8'] },
      { execArgv: ['--max-semi-space-size=4'] }, /is 4, below the advised 16/],
    ['a supervisor drops NODE_OPTIONS', FLAG, {},
      { parents: [{ NODE_OPTIONS: '--max_semi_space_size=16' }] }, /^NODE_OPTIONS of the parent/],
    ['its value is far higher', HEAP, {},
      { execArgv: ['--max-old-space-size=500', '--max-semi-space-size=16'] },
      /^--max-old-space-size is 500, above the advised 400$/],
    ['one of two flags is missing', HEAP, {}, { nodeOptions: ['--max-old-space-size=400'] },
      /only a part/],
    ['the limit beside a flag stays', { ...FLAG, ...LIMIT }, {},
      { nodeOptions: ['--max-semi-space-size=16'] }, /only a part/],
    ['the image lacks the library', LIBRARY, {}, { mallocEnv: { LD_PRELOAD: 'libjemalloc.so.2' } },
      /^LD_PRELOAD names libjemalloc.so.2, but .* did not find it$/],
    ['a supervisor drops LD_PRELOAD', LIBRARY, {},
      { parents: [{}, { LD_PRELOAD: '/lib/libjemalloc.so.2' }] }, /^LD_PRELOAD of the parent/],
    ['only its settings come', LIBRARY, {}, { mallocEnv: { MALLOC_CONF: 'narenas:2' } },
      /^MALLOC_CONF changed, but LD_PRELOAD/],
    ['a variable has another value', ARENAS, {}, { mallocEnv: { MALLOC_ARENA_MAX: '8' } },
      /is 8, above the advised 2/],
    ['the limit is raised too little', LIMIT, {}, { memoryLimitBytes: 600 * MIB },
      /is 600 MiB, below the advised 768 MiB/]
  ]
  it.each(lost)('does not arrive if %s', (_, change, before, after, reason) => {
    expect(judgeArrival(change, setup(before), setup(after)))
      .toEqual({ kind: 'lost', reason: expect.stringMatching(reason) })
  })

  it.each([
    [FLAG, {}, {}],
    [FLAG, { nodeOptions: ['--max-semi-space-size=16'] }, { nodeOptions: ['--max-semi-space-size=16'] }],
    [FLAG, { execArgv: ['--max-semi-space-size=4'] }, {}],
    [FLAG, {}, { nodeOptions: ['--max-old-space-size=400'], release: 'b' }],
    [LIBRARY, LOADED, LOADED],
    [LIBRARY, {}, { mallocEnv: { LD_PRELOAD: '/lib/libother.so' } }],
    [ARENAS, {}, { release: 'b' }],
    [LIMIT, {}, { memoryLimitBytes: 400 * MIB }],
    [LIMIT, { memoryLimitBytes: null }, { memoryLimitBytes: null }],
    [{ code: 'Let go.' }, {}, {}],
    [{ code: 'Let go.' }, { release: null }, { release: 'b' }]
  ])('is not attempted by a restart without a trace of it: %j, %j, %j', (change, before, after) => {
    expect(judgeArrival(change, setup(before), setup(after))).toBeNull()
  })

  it.each([{ release: 'b' }, { node: '24.1.0' }, { pointerCompression: true }])(
    'of code may be in another release: %j', after => {
      expect(judgeArrival({ code: 'Let go.' }, setup(), setup(after))).toEqual({ kind: 'released' })
    })
})

const PAUSES = {
  signal: /** @type {const} */ ('gcPauseRatio'), name: 'share of time in GC', from: 0.3, to: 0.1, unit: 'ratio'
}
const RSS = {
  signal: /** @type {const} */ ('rssBytes'), name: 'RSS', from: 400 * MIB, to: 200 * MIB, unit: 'bytes'
}
const fixOf = (change, ...predicted) => ({ title: 'Do it', change, predicted, risk: '' })
const readings = (values, workRatio = 0.5, count = 60) =>
  Array.from({ length: count }, () => ({ values, workRatio, allocatedPerSecond: null }))
const advice = (fix, changes = {}) => ({
  id: '1',
  workload: 'shop',
  thread: 'main',
  target: 'shop',
  diagnosis: 'semi-space-starvation',
  title: 'New space too small',
  atUnixMs: 2000,
  confirmedAtUnixMs: 1000,
  fixes: [fix],
  setup: setup(),
  readings: readings({ gcPauseRatio: 0.3, rssBytes: 400 * MIB }),
  confirmed: { workSeconds: 20, ageSeconds: 40 },
  levelled: { workSeconds: 60, ageSeconds: 120 },
  ...changes
})
const ARRIVED = { kind: /** @type {const} */ ('arrived') }
const RELEASED = { kind: /** @type {const} */ ('released') }
/**
 * @param {Record<string, number | null>} values
 * @param {Partial<Parameters<typeof judgeFollowUp>[1]> & { workRatio?: number }} [changes]
 */
const after = (values, { workRatio = 0.5, ...changes } = {}) => ({
  readings: readings(values, workRatio),
  now: { workSeconds: 100, ageSeconds: 200 },
  state: /** @type {const} */ ('ok'),
  ...changes
})

describe('a follow-up', () => {
  const gc = { advice: advice(fixOf(FLAG, PAUSES)), fix: fixOf(FLAG, PAUSES), arrival: ARRIVED }
  const rss = { advice: advice(fixOf(ARENAS, RSS)), fix: fixOf(ARENAS, RSS), arrival: ARRIVED }

  it.each(/** @type {const} */ ([
    [0.15, 'ok', 'fixed_as_predicted'],
    [0.05, 'ok', 'fixed_as_predicted'],
    [0.151, 'ok', 'helped_less'],
    [0.1, 'confirmed', 'helped_less'],
    [0.249, 'ok', 'helped_less'],
    [0.251, 'ok', 'did_not_help'],
    [0.4, 'confirmed', 'did_not_help']
  ]))('from 30 %% of GC, predicted 10 %%, to %d while %s: %s', (gcPauseRatio, state, ending) => {
    expect(judgeFollowUp(gc, after({ gcPauseRatio }, { state }))?.ending).toBe(ending)
  })

  it('states its numbers', () => {
    expect(judgeFollowUp(gc, after({ gcPauseRatio: 0.08 }))).toMatchObject({
      effectRatio: expect.closeTo(1.1),
      text: 'Fixed as predicted: share of time in GC went from 30 % to 8 %, predicted 10 %.',
      outcomes: [{ from: 0.3, to: expect.closeTo(0.1), measured: 0.08 }]
    })
  })

  it('compares time in GC for the same work: half of the load halves it without a fix', () => {
    expect(judgeFollowUp(gc, after({ gcPauseRatio: 0.15 }, { workRatio: 0.25 }))?.ending)
      .toBe('did_not_help')
    expect(judgeFollowUp(gc, after({ gcPauseRatio: 0.2 }, { workRatio: 1 }))?.ending)
      .toBe('fixed_as_predicted')
  })

  it('compares by allocated bytes if both sides count them', () => {
    const counted = (values, allocatedPerSecond) =>
      readings(values).map(reading => ({ ...reading, allocatedPerSecond }))
    const attempt = {
      ...gc, advice: advice(gc.fix, { readings: counted({ gcPauseRatio: 0.3 }, 200 * MIB) })
    }
    expect(judgeFollowUp(attempt, {
      ...after({}), readings: counted({ gcPauseRatio: 0.15 }, 100 * MIB)
    })?.ending).toBe('did_not_help')
  })

  it('compares a level of memory at a similar load, after as much work as the rise took', () => {
    const low = { rssBytes: 210 * MIB }
    expect(judgeFollowUp(rss, after(low))?.ending).toBe('fixed_as_predicted')
    expect(judgeFollowUp(rss, after(low, { now: { workSeconds: 59, ageSeconds: 500 } }))).toBeNull()
    expect(judgeFollowUp(rss, after(low, { workRatio: 0.2 }))).toBeNull()
    const quiet = readings({ rssBytes: 100 * MIB }, 0.1)
    const busy = readings({ rssBytes: 390 * MIB })
    expect(judgeFollowUp(rss, { ...after({}), readings: [...quiet, ...busy] })?.ending)
      .toBe('did_not_help')
  })

  it('waits for enough readings, and for as much work as the finding took', () => {
    const seen = after({ gcPauseRatio: 0.1 })
    const read = count => judgeFollowUp(gc, { ...seen, readings: seen.readings.slice(-count) })
    expect(read(5)).toBeNull()
    expect(read(6)).not.toBeNull()
    expect(judgeFollowUp(gc, { ...seen, now: { workSeconds: 19, ageSeconds: 900 } })).toBeNull()
    expect(judgeFollowUp(gc, { ...seen, now: { workSeconds: 20, ageSeconds: 20 } })).not.toBeNull()
  })

  it('waits ten minutes before it says that a fix achieved less, unless the finding returns', () => {
    const fills = after({ gcPauseRatio: 0.2 })
    const young = { ...fills, readings: fills.readings.slice(1) }
    expect(judgeFollowUp(gc, young)).toBeNull()
    expect(judgeFollowUp(gc, fills)?.ending).toBe('helped_less')
    expect(judgeFollowUp(gc, { ...young, state: 'confirmed' })?.ending).toBe('helped_less')
  })

  it('takes a missing trend for no growth once the diagnosis is decided', () => {
    const growth = {
      signal: /** @type {const} */ ('liveHeapGrowthBytesPerSecond'), name: 'growth of the live heap', from: MIB, to: 0, unit: 'bytesPerSecond'
    }
    const fix = fixOf({ code: 'Let go.' }, growth)
    const leak = {
      advice: advice(fix, { readings: readings({ liveHeapGrowthBytesPerSecond: MIB }) }),
      fix,
      arrival: RELEASED
    }
    const gone = after({ liveHeapGrowthBytesPerSecond: null })
    expect(judgeFollowUp(leak, { ...gone, state: 'unknown' })).toBeNull()
    expect(judgeFollowUp(leak, gone)?.ending).toBe('fixed_as_predicted')
  })

  it('does not blame a release that may lack the change', () => {
    const fix = fixOf({ code: 'Let go.' }, PAUSES)
    const release = { advice: advice(fix), fix, arrival: RELEASED }
    expect(judgeFollowUp(release, after({ gcPauseRatio: 0.3 }, { state: 'confirmed' }))).toBeNull()
    expect(judgeFollowUp(release, after({ gcPauseRatio: 0.09 }))?.ending).toBe('fixed_as_predicted')
  })

  it('uses the verdict if nothing is predicted', () => {
    const fix = fixOf(LIMIT)
    const limit = { advice: advice(fix), fix, arrival: ARRIVED }
    expect(judgeFollowUp(limit, after({}, { state: 'unknown' }))).toBeNull()
    expect(judgeFollowUp(limit, after({}))?.text).toBe('Fixed as predicted: the finding is gone.')
    expect(judgeFollowUp(limit, after({}, { state: 'confirmed' }))?.ending).toBe('did_not_help')
  })

  it('prefers a fix that arrived to a lost one, and a lost one to another release', () => {
    const fixes = [fixOf({ code: 'Let go.' }), fixOf(ARENAS), fixOf(FLAG)]
    const seen = changes => findAttempts([advice(fixes[0], { fixes })], setup(changes))
      .map(({ fix, arrival }) => [fixes.indexOf(fix), arrival.kind])
    const arenas = { mallocEnv: { MALLOC_ARENA_MAX: '4' } }
    expect(seen({ release: 'b' })).toEqual([[0, 'released']])
    expect(seen({ release: 'b', ...arenas })).toEqual([[1, 'lost']])
    expect(seen({ release: 'b', ...arenas, nodeOptions: ['--max-semi-space-size=16'] }))
      .toEqual([[2, 'arrived']])
    expect(seen({})).toEqual([])
  })
})

const RECORDINGS = path.join(__dirname, '../recordings')
/** Recordings are short, so readings are more frequent and begin at the start. */
const SHORT = { everySeconds: 2, settleSeconds: 4, leastReadings: 4, parentsOf: () => [] }

/**
 * Replays a recorded run and then another one as its successor, and returns the follow-ups.
 * @param {string} was
 * @param {string} is
 * @param {{ release?: string, kept?: FollowUps }} [options]
 */
async function comeBack (was, is, { release = 'b', kept } = {}) {
  let current = 'a'
  const followUps = kept ?? new FollowUps({ targets: () => [], releaseOf: () => current, ...SHORT })
  const advised = []
  const ended = []
  followUps.on('advised', advice => advised.push(advice))
  followUps.on('followed', (_, followUp) => ended.push(followUp))
  for (const [name, startedAtUnixMs] of /** @type {const} */ ([[was, 0], [is, 4e12]])) {
    const { targets } = await replayFile(path.join(RECORDINGS, `${name}.ndjson.gz`), {
      onFrame: target => {
        target.hello.startedAtUnixMs ||= startedAtUnixMs
        if (startedAtUnixMs > 0) target.hello.startedAtUnixMs = startedAtUnixMs
        followUps.framed(target)
      }
    })
    if (name === was) for (const target of targets) followUps.ended(target)
    current = release
  }
  return { followUps, advised, ended }
}

describe('recorded runs with a successor', () => {
  it.each([
    ['24-allocator-fragmentation', 'allocator-fragmentation'],
    ['24-idle-heap-not-returned', 'idle-heap-not-returned'],
    ['24-container-limit-mismatch-jobs', 'container-limit-mismatch'],
    ['24-resource-leak', 'resource-leak'],
    ['24-js-heap-leak-worker', 'js-heap-leak']
  ])('%s with its fix is fixed as predicted', async (app, diagnosis) => {
    const { ended } = await comeBack(`${app}-broken`, `${app}-fixed`)
    expect(ended).toMatchObject([{ diagnosis, ending: 'fixed_as_predicted' }])
  })

  it('of a leak that is confirmed just before its end have readings since its suspicion', async () => {
    const followUps = new FollowUps({ targets: () => [], releaseOf: () => 'a', ...SHORT })
    const { advised } = await comeBack(
      '24-js-heap-leak-worker-broken', '24-js-heap-leak-worker-fixed', { kept: followUps }
    )
    const { readings } = defined(advised.find(({ diagnosis }) => diagnosis === 'js-heap-leak'))
    // There are only 4 readings between its confirmation and its end.
    expect(readings.length).toBeGreaterThan(20)
  })

  it('without a trace of the advice are no attempt', async () => {
    const app = '24-idle-heap-not-returned-broken'
    expect((await comeBack(app, app)).ended).toEqual([])
  })

  it('in another release, unchanged, are no attempt either', async () => {
    expect((await comeBack('24-resource-leak-broken', '24-resource-leak-broken')).ended).toEqual([])
  })

  it('are followed up once, and again by a later exporter from its data folder', async () => {
    const app = '24-idle-heap-not-returned'
    const { followUps, advised, ended: [first] } =
      await comeBack(`${app}-broken`, `${app}-fixed`)
    expect(followUps.all).toEqual([first])
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-follow-ups-'))
    try {
      const recorder = () => new FlightRecorder({ targets: new Targets({ now: () => 0 }), folder })
      const saving = recorder()
      saving.restore(new Deaths())
      for (const advice of advised) saving.advised(advice)
      saving.followed(first)
      await saving.stop()
      const restored = new FollowUps({ targets: () => [], ...SHORT })
      const reading = recorder()
      reading.restore(new Deaths(), restored)
      await reading.stop()
      expect(restored.all).toEqual([first])
      expect(restored.counts.get('idle-heap-not-returned')?.get('fixed_as_predicted')).toBe(1)
      expect(restored.effects.get('idle-heap-not-returned')).toBeCloseTo(first.effectRatio)
      const again = await comeBack(`${app}-fixed`, `${app}-fixed`, { kept: restored })
      expect(again.ended).toEqual([])
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })

  it('skip stored advice of an unknown diagnosis', () => {
    const meta = { type: 'advised', advice: { ...advice(fixOf(FLAG)), diagnosis: 'x"}' } }
    expect(decodeRecord({ meta, bytes: Buffer.alloc(0) }, 'deaths')).toBeUndefined()
    const known = { type: 'advised', advice: advice(fixOf(FLAG, PAUSES)) }
    expect(decodeRecord({ meta: known, bytes: Buffer.alloc(0) }, 'deaths')).toEqual(known)
  })
})

describe('real processes', () => {
  /** Starts an exporter that has advised a flag, and a process of the workload with the problem. */
  async function adviseFlag () {
    const it_ = await startExporter()
    const name = 'semi-space-starvation'
    /** @type {any[]} */
    const posts = []
    it_.exporter.on('followed', (_, followUp) => posts.push(followUp))
    const unhealthy = await tellRecording(it_, name, { name, pid: 4711, startedAtUnixMs: 1000 })
    const [{ fix: [{ change }] }] = findCase(it_.exporter.targets[0]).verdicts
      .filter(({ state }) => state === 'confirmed')
    return { it_, name, posts, unhealthy, flag: defined(change.flag) }
  }

  it('with the advised flag are recognised; if the flag is overridden, it was lost', async () => {
    const { it_, name, posts, unhealthy, flag } = await adviseFlag()
    const start = (NODE_OPTIONS, before = []) => spawnWatched({
      before,
      args: ['-e', 'setInterval(() => {}, 1000)'],
      socket: it_.socket.path,
      env: { MEMWATCH_NAME: name, NODE_OPTIONS }
    })
    const started = [start(flag), start(flag, ['--max-semi-space-size=1']), start('')]
    const children = started.map(({ child }) => child)
    const ask = async path => (await it_.get(`/api/v1/${path}`)).json()
    const targets = await eventually(() => ask('diagnoses'), found =>
      found.length === 4 && found.filter(({ verdicts }) =>
        verdicts.some(({ followUp }) => followUp)).length === 2)
    const seen = pid => targets.find(target => target.pid === pid).verdicts
      .flatMap(({ followUp }) => followUp ?? [])
    expect(seen(children[0].pid)).toMatchObject([{ diagnosis: name, ending: null }])
    expect(seen(children[1].pid)).toMatchObject([{
      ending: 'did_not_arrive',
      text: `Did not arrive: NODE_OPTIONS sets ${flag}, but the command line sets ` +
        '--max-semi-space-size=1 after it, which overrides it.'
    }])
    expect(seen(children[2].pid)).toEqual([])
    expect(await ask('follow-ups')).toEqual(posts)
    expect(posts).toHaveLength(1)
    expect(await it_.metrics()).toContain(
      `memwatch_fix_followups_total{diagnosis="${name}",ending="did_not_arrive"} 1`)
    for (const child of children) child.kill()
    await Promise.all(started.map(({ ended }) => ended))
    unhealthy.destroy()
    await it_.stop()
  }, 30_000)

  it('that restart have one ending for each reason why the change is lost', async () => {
    const { it_, name, posts, unhealthy, flag } = await adviseFlag()
    unhealthy.destroy()
    for (const size of [1, 1, 2]) {
      const { child, ended } = spawnWatched({
        before: [`--max-semi-space-size=${size}`],
        args: ['-e', 'setInterval(() => {}, 1000)'],
        socket: it_.socket.path,
        env: { MEMWATCH_NAME: name, NODE_OPTIONS: flag }
      })
      const hasCome = () => it_.exporter.targets.some(({ hello }) => hello.pid === child.pid)
      await eventually(hasCome, Boolean)
      await eventually(() => posts.length, length => length === size)
      const vanished = once(it_.exporter, 'vanish')
      child.kill()
      await Promise.all([ended, vanished])
    }
    expect(posts.map(({ ending, text }) => [ending, /size=[12]/.exec(text)?.[0]]))
      .toEqual([['did_not_arrive', 'size=1'], ['did_not_arrive', 'size=2']])
    await it_.stop()
  }, 60_000)

  it('with other code have another release', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-release-'))
    try {
      const script = path.join(folder, 'app.js')
      const releaseOf = async (code, ...args) => {
        fs.writeFileSync(script, `${code}; console.log('up'); setInterval(() => {}, 1000)`)
        const child = require('node:child_process').spawn(process.execPath, [script, ...args],
          { env: environment({}), stdio: ['ignore', 'pipe', 'ignore'] })
        await once(defined(child.stdout), 'data')
        const stat = fs.readFileSync(`/proc/${child.pid}/stat`, 'utf8')
        const startTimeTicks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
        const release = readRelease(/** @type {any} */ ({ pid: child.pid, startTimeTicks }))
        child.kill()
        return release
      }
      const first = await releaseOf('1')
      expect(first).toMatch(/^[0-9a-f]{16}$/)
      expect(await releaseOf('1')).toBe(first)
      expect(await releaseOf('2')).not.toBe(first)
      expect(await releaseOf('1', '--fixed')).not.toBe(first)
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })

  it('in another ReplicaSet have another release, and in the same one the same release', () => {
    const hello = name => /** @type {any} */ ({ pid: 1, pod: { name } })
    const first = readRelease(hello('shop-7d9f8c6b5d-x2x4z'))
    expect(readRelease(hello('shop-7d9f8c6b5d-b7k9w'))).toBe(first)
    expect(readRelease(hello('shop-5c8d7b9f6c-b7k9w'))).not.toBe(first)
    expect(readRelease(hello('shop'))).toBeNull()
  })
})

'use strict'

const { execFileSync } = require('node:child_process')
const { ForcedGc, LIMITS } = require('../../agent/forced-gc')
const { EventLoopDelay } = require('../../agent/collect/delay')
const { gc, noOwnGc } = require('../../agent/collect/gc')
const { isOwnGc } = require('../../agent/protocol/frame')
const { CommandError } = require('../../exporter/commands/commands')
const { NODES, spawnBounded, spawnWatched, versionOf } = require('../support/agent-collector')
const { startExporter, eventually } = require('../support/exporter')

const MIB = 2 ** 20

const { distanceSeconds: LEAST_DISTANCE_SECONDS } = LIMITS.allow

/** A process with a clock set by the test, whose full GCs take `pauseSeconds`. */
function make ({
  mode = /** @type {keyof typeof LIMITS} */ ('allow'),
  pauseSeconds = 0.001,
  cpuSeconds = pauseSeconds,
  usedBytes = 4 * MIB,
  fails = false
} = {}) {
  const state = { nowMs: 0, cpuMs: 0, pauseSeconds, usedBytes, collected: 0, pending: 0, own: 0 }
  const ownGc = noOwnGc()
  const pauses = { countPending: () => { state.pending++ }, countOwn: () => { state.own++ } }
  const forced = new ForcedGc(mode, ownGc, pauses, {
    now: () => state.nowMs,
    measureCpu: () => {
      const [ms, cpu] = [state.nowMs, state.cpuMs]
      return () => Math.min(state.nowMs - ms, state.cpuMs - cpu) / 1000
    },
    heapUsedBytes: () => state.usedBytes,
    collect: () => {
      if (fails) throw new Error('gc is not defined')
      state.collected++
      state.nowMs += 1000 * state.pauseSeconds
      state.cpuMs += 1000 * cpuSeconds
    }
  })
  const askAt = seconds => {
    state.nowMs = 1000 * seconds
    return forced.run()
  }
  return { state, ownGc, forced, askAt }
}

const MESSAGE = 'too soon after the last full GC'
const OVER_BUDGET = { ok: false, reason: 'too_soon', message: MESSAGE }

describe('the least distance of full GCs on command', () => {
  it('is first estimated from the heap, at 1.6 ms a MiB', () => {
    const { askAt, state } = make({ usedBytes: 100 * MIB })
    expect(askAt(7.999)).toEqual(OVER_BUDGET)
    expect(state.collected).toBe(0)
    expect(askAt(8)).toEqual({ ok: true, blockedSeconds: expect.closeTo(0.001) })
  })
  it('is at least four seconds', () => {
    const { askAt, state } = make({ usedBytes: MIB })
    expect(askAt(LEAST_DISTANCE_SECONDS - 0.001)).toEqual(OVER_BUDGET)
    expect(askAt(LEAST_DISTANCE_SECONDS).ok).toBe(true)
    expect([state.pending, state.own]).toEqual([1, 1])
    // The distance counts from the end of the last GC.
    expect(askAt(2 * LEAST_DISTANCE_SECONDS)).toEqual(OVER_BUDGET)
    expect(askAt(2 * LEAST_DISTANCE_SECONDS + 0.002).ok).toBe(true)
  })
  it.each([
    ['the CPU time of the last one, as a busy machine makes its pause longer', 1, 0.4, 20],
    ['a fifth of its pause, however little CPU time it took', 1, 0.01, 10],
    ['its pause, if threads that help V8 took CPU time, too', 0.2, 0.7, 10]
  ])('is fifty times %s', (_, pauseSeconds, cpuSeconds, least) => {
    const { askAt } = make({ pauseSeconds, cpuSeconds })
    expect(askAt(4)).toEqual({ ok: true, blockedSeconds: expect.closeTo(pauseSeconds) })
    expect(askAt(4 + pauseSeconds + least - 0.01)).toEqual(OVER_BUDGET)
    expect(askAt(4 + pauseSeconds + least + 0.01).ok).toBe(true)
  })
  it('is fifty times the last pause of an idle machine', () => {
    const { askAt } = make({ pauseSeconds: 0.2 })
    expect(askAt(4).ok).toBe(true)
    expect(askAt(4.2 + 9.99)).toEqual(OVER_BUDGET)
    expect(askAt(4.2 + 10).ok).toBe(true)
  })
  it('follows the current heap, at the rate of the last pause', () => {
    const { askAt, state } = make({ pauseSeconds: 0.1, usedBytes: 50 * MIB })
    expect(askAt(4).ok).toBe(true)
    state.usedBytes = 200 * MIB
    expect(askAt(4.1 + 19.99)).toEqual(OVER_BUDGET)
    expect(askAt(4.1 + 20).ok).toBe(true)
  })
  it.each([0.001, 0.1, 2])('limits GCs to 2 % of the time with pauses of %d s', pause => {
    const { forced, ownGc, state } = make({ pauseSeconds: pause, usedBytes: pause / 0.0016 * MIB })
    for (let asked = 0; asked < 20_000; asked++) {
      state.nowMs += 50
      forced.run()
      expect(ownGc.totalMs).toBeLessThanOrEqual(0.02 * state.nowMs)
    }
    expect(state.collected).toBeGreaterThan(8)
  })
  it('is shorter for a gate, whose GCs may take a quarter of the time', () => {
    const { askAt } = make({ mode: 'often', usedBytes: MIB, pauseSeconds: 0.1 })
    expect(askAt(0.099)).toEqual(OVER_BUDGET)
    expect(askAt(0.1).ok).toBe(true)
    expect(askAt(0.2 + 0.399)).toEqual(OVER_BUDGET)
    expect(askAt(0.2 + 0.401).ok).toBe(true)
  })
  it('does not count a GC that failed', () => {
    const { askAt, ownGc } = make({ fails: true })
    const refused = { ok: false, reason: 'not_supported', message: 'this Node exposes no gc' }
    expect([askAt(10), askAt(10)]).toEqual([refused, refused])
    expect(ownGc.totalMs).toBe(0)
  })
})

describe('a full GC on command', () => {
  const entry = (startTime, { kind = 4, flags = 4 } = {}) =>
    /** @type {any} */ ({ startTime, duration: 3, detail: { kind, flags } })

  it('is recognized by its start time', () => {
    const ownGc = noOwnGc()
    /** @type {any[]} */
    let pending = []
    const collector = gc(
      {
        observer: /** @type {any} */ ({
          deliverTo () {}, takeRecords: () => pending.splice(0), connect () {}, disconnect () {}
        })
      },
      (_, work) => work,
      ownGc
    )
    const counts = () => {
      /** @type {any} */
      const values = {}
      collector.read(values, { count: 0, nowSeconds: 0 })
      return Object.fromEntries(Object.entries(values.gc).map(([key, [count]]) => [key, count]))
    }
    pending = [entry(100)]
    expect(counts()).toEqual({ 'major/forced': 1 })
    Object.assign(ownGc, { beganMs: 200, endedMs: 205 })
    pending = [
      entry(199.89),
      entry(199.91),
      entry(204, { kind: 16, flags: 0 }),
      entry(205.09),
      entry(205.11, { kind: 1, flags: 0 })
    ]
    const found = counts()
    expect(found).toEqual({
      'major/forced': 2, 'major/memwatch': 2, 'weakcb/memwatch': 1, 'minor/ordinary': 1
    })
    expect(Object.keys(found).filter(isOwnGc)).toEqual(['major/memwatch', 'weakcb/memwatch'])
    expect(collector.majors()).toBe(4)
  })

  it('is not counted as event loop delay of the app', async () => {
    const longestDelay = async own => {
      const ownGc = noOwnGc()
      const collector = new EventLoopDelay(1000, (_, work) => work, ownGc)
      collector.start?.()
      const began = performance.now()
      while (performance.now() - began < 200);
      if (own) ownGc.totalMs += performance.now() - began
      await new Promise(resolve => setTimeout(resolve, 60))
      collector.stop?.()
      /** @type {any} */
      const values = {}
      collector.read(values, { count: 0, nowSeconds: NaN })
      return values.eventLoopDelay[2]
    }
    expect(await longestDelay(false)).toBeGreaterThan(0.14)
    expect(await longestDelay(true)).toBeLessThan(0.1)
  })
})

const COUNTERS = /** @type {const} */ ([['hooks', 'on'], ['observer', 'off']])
const EACH = NODES.flatMap(node =>
  COUNTERS.map(([counter, hooks]) => [versionOf(node), counter, node, hooks])
)

describe.each(EACH)('on Node %s, by the %s', (_, counter, node, hooks) => {
  /** @type {any} result of startExporter */
  let exporter
  /** @type {ReturnType<typeof spawnWatched> | undefined} */
  let app
  afterEach(async () => {
    app?.child.kill('SIGKILL')
    await app?.ended
    await exporter?.stop()
    exporter = undefined
  })

  /**
   * Starts an app with the agent.
   * @param {string} code
   * @param {{ env?: NodeJS.ProcessEnv, args?: string[], threadId?: number }} [options]
   */
  async function watched (code, { env = { MEMWATCH_FORCED_GC: 'allow' }, args = [], threadId = 0 } = {}) {
    exporter = await startExporter()
    app = spawnWatched({
      node,
      args: [...args, '-e', code],
      socket: exporter.socket.path,
      env: { MEMWATCH_INTERVAL_SECONDS: '0.2', MEMWATCH_GC_HOOKS: hooks, ...env },
      timeoutMs: 90_000
    })
    return eventually(
      () => exporter.exporter.targets.find(({ frame, hello }) =>
        frame && hello.threadId === threadId),
      Boolean
    )
  }
  /** @param {import('../../engine/history/target').Target} target */
  const force = target => exporter.exporter.commands.carryOut(target, 'force_gc')
  /** @param {import('../../engine/history/target').Target} target */
  const forcedWhenAllowed = target => eventually(
    () => force(target).catch(error => {
      if (error instanceof CommandError && error.code === 'too_soon') return undefined
      throw error
    }),
    answer => answer?.ok === true,
    // GCs take at most 2 % of the time, and a GC takes long on a busy machine.
    45_000
  )
  /** @param {import('../../engine/history/target').Target} target */
  const counts = ({ values }) =>
    Object.fromEntries(Object.entries(values.gc ?? {}).map(([key, [count]]) => [key, count]))

  it.each([
    ['the main thread', 0, ''],
    [
      'a worker',
      1,
      'if (require("worker_threads").isMainThread) new (require("worker_threads").Worker)(CODE, { eval: true }); else'
    ]
  ])('%s reads its live heap after one, and hides gc from the app', async (_, threadId, start) => {
    const body = `
      const dead = Array.from({ length: 3e4 }, (_, i) => ({ i }))
      setTimeout(() => { dead.length = 0 }, 1000)
      setInterval(() => {
        if (typeof gc !== 'undefined' || require('vm').runInNewContext('typeof gc') !== 'undefined') console.log('gc is exposed')
      }, 50)`
    const code = start === '' ? body : `const CODE = ${JSON.stringify(body)}; ${start} 0`
    const target = await watched(code, { threadId })
    expect(target.hello.commands).toContain('force_gc')
    expect(target.hello.gcCounter).toBe(counter)
    await expect(force(target)).rejects.toThrow(MESSAGE)
    const before = target.values.liveHeapMajors ?? 0
    const { blockedSeconds } = await forcedWhenAllowed(target)
    expect(blockedSeconds).toBeGreaterThan(0.0005)
    await eventually(() => counts(target)['major/memwatch'] === 1, Boolean)
    expect(target.values.liveHeapMajors).toBeGreaterThan(before)
    expect(target.values.liveHeapBytes).toBeLessThan(12 * MIB)
    expect(counts(target)['major/forced']).toBeUndefined()
    const [, seconds] = target.values.gc['major/memwatch']
    expect(seconds).toBeLessThanOrEqual(blockedSeconds + 0.001)
    await expect(force(target)).rejects.toThrow(MESSAGE)
    expect(target.values.agentErrors).toBe(0)
    app?.child.kill('SIGTERM')
    expect(await app?.ended).toMatchObject({ stdout: '', stderr: '' })
  }, 90_000)

  it('changes neither --expose-gc nor GCs of the app', async () => {
    const target = await watched('gc(); setInterval(() => gc(), 300)', { args: ['--expose-gc'] })
    await forcedWhenAllowed(target)
    await eventually(() => counts(target)['major/memwatch'] === 1, Boolean)
    const forced = counts(target)['major/forced']
    await eventually(() => counts(target)['major/forced'] > forced, Boolean)
    expect(counts(target)['major/memwatch']).toBe(1)
  }, 90_000)

  it('uses the clock of V8’s reports, even if the machine was busy at the start', async () => {
    const { stdout } = await spawnBounded(node, ['-e', `
      const { performance } = require('perf_hooks'), { now } = performance
      let calls = 0
      performance.now = () => {
        const then = now.call(performance)
        if (calls++ < 2) while (now.call(performance) - then < 30);
        return then
      }
      const { nowMs } = require(${JSON.stringify(require.resolve('../../agent/primordials'))})
      const apart = Array.from({ length: 20 }, () => Math.abs(nowMs() - now.call(performance)))
      console.log(Math.min(...apart))`]).ended
    expect(Number(stdout)).toBeLessThan(0.05)
  })

  it.each([
    ['nothing is set', {}],
    ['it is off', { MEMWATCH_FORCED_GC: 'off' }]
  ])('the agent refuses the command if %s', async (_, env) => {
    const target = await watched('setInterval(() => {}, 1000)', { env })
    expect(target.hello.commands).toEqual(['capture', 'sample_heap', 'count_slices'])
    await expect(force(target)).rejects.toThrow('MEMWATCH_FORCED_GC=allow')
    // Even if the hello lists the command, the agent refuses it, because the operator has not
    // allowed it.
    target.hello.commands?.push('force_gc')
    await expect(force(target)).rejects.toThrow('does not know this command')
  }, 30_000)
})

it.each(NODES)('refuses a full GC where flags are frozen, as V8 would abort: %s', async node => {
  const flag = '--freeze-flags-after-init'
  // Node.js 18 does not know the flag.
  const isKnown = execFileSync(node, ['--v8-options'], { encoding: 'utf8' }).includes(flag)
  const code = `
    const { ForcedGc } = require(${JSON.stringify(require.resolve('../../agent/forced-gc'))})
    const pauses = { countPending () {}, countOwn () {} }
    setTimeout(() => console.log(new ForcedGc('often', {}, pauses).run().reason), 200)`
  const flags = isKnown ? [flag] : []
  const { stdout, code: status } = await spawnBounded(node, [...flags, '-e', code]).ended
  expect([stdout, status]).toEqual([isKnown ? 'not_supported\n' : 'undefined\n', 0])
}, 30_000)

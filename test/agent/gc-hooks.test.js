'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { installAgent } = require('../../cli/install-agent')
const { GcCheck, CONSISTENT_FRAMES } = require('../../agent/collect/gc-check')
const { ROW_LENGTH, HEADER } = require('../../agent/collect/gc-hooked')
const { GC_HOOKS_MISSING, GC_PAUSE_BOUNDS_SECONDS } = require('../../agent/protocol/frame')
const {
  AGENT,
  NODES,
  environment,
  spawnBounded,
  startCollector,
  versionOf
} = require('../support/agent-collector')

const ALLOCATOR = path.join(__dirname, '../../allocator')
const ADDON = path.join(ALLOCATOR, `prebuilt/${process.platform}-${process.arch}.node`)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-gc-hooks-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Columns of a row that `take` writes: its kind, flags, count, sum and longest. */
const LAYOUT = `
  const HEADER = ${JSON.stringify(HEADER)}, ROW_LENGTH = ${ROW_LENGTH}
  /** Counts of one counter: for each kind and flags the count, seconds and buckets. */
  class Counter {
    constructor (addon) {
      this.hooks = addon.countGcs()
      this.out = new Float64Array(this.hooks.takenLength)
      this.rows = {}
      this.majors = 0
    }
    take () {
      const { out } = this
      this.hooks.take(out)
      this.majors = out[HEADER.majors]
      for (let i = 0; i < out[HEADER.rows]; i++) {
        const at = HEADER.firstRow + i * ROW_LENGTH
        const [kind, flags, count, seconds, longest, ...buckets] =
          out.subarray(at, at + ROW_LENGTH)
        const row = this.rows[kind + '/' + flags] ??=
          { count: 0, seconds: 0, longest: 0, buckets: buckets.map(() => 0) }
        row.count += count
        row.seconds += seconds
        row.longest = Math.max(row.longest, longest)
        buckets.forEach((n, i) => { row.buckets[i] += n })
      }
      return this.rows
    }
  }
  /** Allocates, with a full GC now and then, and external memory; then calls what follows. */
  function work (rounds, then) {
    const kept = []
    let round = 0
    const timer = setInterval(() => {
      for (let i = 0; i < 40000; i++) kept[(i * 7) % 30000] = { i, text: 'n' + i }
      if (round % 5 === 0) globalThis.gc?.()
      if (round % 7 === 0) globalThis.gc?.({ type: 'minor' })
      for (let i = 0; i < 6; i++) kept[30000 + i] = Buffer.alloc(2 ** 20, 1)
      if (++round === rounds) { clearInterval(timer); then() }
    }, 2)
  }`

/**
 * @param {string} node
 * @param {string} code
 * @param {{ args?: string[], timeoutMs?: number }} [options]
 * @returns {Promise<any>} its output, as JSON
 */
async function printedBy (node, code, { args = [], timeoutMs = 60_000 } = {}) {
  const { code: exitCode, signal, stdout, stderr } = await spawnBounded(
    node,
    ['--expose-gc', ...args, '-e', LAYOUT + code],
    { timeoutMs }
  ).ended
  expect([exitCode, signal, stderr]).toEqual([0, null, ''])
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n{') + 1))
}

/** @param {Record<string, { count: number }>} rows */
const countsOf = rows =>
  Object.fromEntries(Object.entries(rows).map(([key, { count }]) => [key, count]))

it('the addon has the buckets of the wire contract', () => {
  const source = fs.readFileSync(path.join(ALLOCATOR, 'gc-hooks.c'), 'utf8')
  const bounds = /BOUNDS\[\] = \{([^}]*)\}/.exec(source)?.[1].split(',').map(Number)
  expect(bounds).toEqual([...GC_PAUSE_BOUNDS_SECONDS])
})

it('docs/troubleshooting.md has each reason for the use of an observer, with a remedy', () => {
  const text = fs.readFileSync(path.join(__dirname, '../../docs/troubleshooting.md'), 'utf8')
  const [, section] = /^## `gcCounter` is `observer`\n([\s\S]*?)^## /m.exec(text) ?? ['', '']
  const reasons = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason)
  expect(reasons).toEqual([...GC_HOOKS_MISSING])
})

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('has the same counts and pauses as an observer at the same time', async () => {
    const { hooked, observed } = await printedBy(node, `
      const counter = new Counter(require(${JSON.stringify(ADDON)}))
      const observed = {}
      const add = entries => {
        for (const { duration, detail: { kind, flags } } of entries) {
          const row = observed[kind + '/' + flags] ??= { count: 0, seconds: 0, longest: 0 }
          row.count++
          row.seconds += duration / 1000
          row.longest = Math.max(row.longest, duration / 1000)
        }
      }
      const observer = new (require('perf_hooks').PerformanceObserver)(list => add(list.getEntries()))
      observer.observe({ type: 'gc' })
      work(60, () => setTimeout(() => {
        add(observer.takeRecords())
        console.log(JSON.stringify({ hooked: counter.take(), observed }))
      }, 50))`, { args: ['--max-semi-space-size=1'] })
    expect(countsOf(hooked)).toEqual(countsOf(observed))
    const kinds = Object.keys(hooked).map(key => Number(key.split('/')[0]))
    expect(kinds).toEqual(expect.arrayContaining([1, 4]))
    expect(hooked['1/0'].count).toBeGreaterThan(30)
    for (const [key, { count, seconds, longest, buckets }] of Object.entries(hooked)) {
      expect(buckets.reduce((sum, n) => sum + n)).toBe(count)
      expect(longest).toBeLessThanOrEqual(seconds)
      // Other processes may run between the two callbacks.
      expect(Math.abs(seconds - observed[key].seconds)).toBeLessThan(0.05 * seconds + 0.02)
    }
  })

  it('has the counts of --trace-gc', async () => {
    const { stdout } = await spawnBounded(
      node,
      ['--trace-gc', '--max-semi-space-size=1', '-e', `${LAYOUT}
        const { writeSync } = require('fs')
        const counter = new Counter(require(${JSON.stringify(ADDON)}))
        writeSync(1, 'BEGIN\\n')
        work(40, () => {
          const rows = counter.take()
          writeSync(1, 'END\\n' + JSON.stringify(rows) + '\\n')
        })`]
    ).ended
    const trace = stdout.slice(stdout.indexOf('BEGIN'), stdout.indexOf('END'))
    const rows = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '')
    const counted = (/** @type {number} */ kind) =>
      Object.entries(rows).reduce((sum, [key, { count }]) => (key.startsWith(`${kind}/`) ? sum + count : sum), 0)
    expect(counted(1)).toBe((trace.match(/ ms: Scavenge/g) ?? []).length)
    expect(counted(4)).toBe((trace.match(/ ms: (Incremental )?Mark-(sweep|Compact)/g) ?? []).length)
    expect(counted(1)).toBeGreaterThan(10)
  })

  it('reads the exact live heap at the end of each major GC', async () => {
    const readings = await printedBy(node, `
      const v8 = require('v8')
      const counter = new Counter(require(${JSON.stringify(ADDON)}))
      const isLive = ({ space_name: name }) => !name.startsWith('new_')
      const live = () => v8.getHeapSpaceStatistics().filter(isLive)
        .reduce((sum, { space_used_size: used }) => sum + used, 0)
      const spaces = v8.getHeapSpaceStatistics()
        .reduce((bits, space, i) => isLive(space) ? bits | 1 << i : bits, 0)
      const before = live()
      const read = counter.hooks.readLiveHeap(spaces)
      const kept = Array.from({ length: 2e5 }, (_, i) => ({ i }))
      const { out } = counter
      gc()
      const after = live()
      counter.take()
      console.log('\\n' + JSON.stringify({ before, read, readAfter: live(), hooked: out[HEADER.liveBytes], after, majors: [out[HEADER.majors], out[HEADER.liveMajors]], kept: kept.length }))`)
    const { before, read, readAfter, hooked, after, majors } = readings
    expect(read).toBeGreaterThanOrEqual(before)
    expect(readAfter).toBeGreaterThan(read)
    expect(majors[0]).toBe(majors[1])
    expect(Math.abs(hooked - after)).toBeLessThan(0.02 * after)
  })

  it('counts for several callers until each stops, and after a second process.dlopen', async () => {
    const copy = path.join(folder, `copy-${versionOf(node)}.node`)
    fs.copyFileSync(ADDON, copy)
    const { counts, stopped, taken } = await printedBy(node, `
      const load = file => {
        const module = { exports: {} }
        process.dlopen(module, file)
        return module.exports
      }
      const files = [${JSON.stringify(ADDON)}, ${JSON.stringify(ADDON)}, ${JSON.stringify(copy)}]
      const counters = []
      for (const file of files) { counters.push(new Counter(load(file))); gc() }
      for (let i = 0; i < 10; i++) gc()
      const forced = () => counters.map(counter => Object.entries(counter.take()).reduce((sum, [key, { count }]) => key.startsWith('4/') ? sum + count : sum, 0))
      const counts = forced()
      counters[1].hooks.stop()
      counters[1].hooks.stop()
      gc()
      const taken = [
        [],
        [1],
        [new Float64Array(3)],
        [new Float32Array(10000)],
        [{}]
      ].map(args => String(counters[0].hooks.take(...args)))
      console.log('\\n' + JSON.stringify({ counts, stopped: forced(), taken }))`)
    expect(counts).toEqual([13, 12, 11])
    expect(stopped).toEqual([14, 12, 12])
    expect(taken).toEqual(Array(5).fill('undefined'))
  })

  it('frees the memory of a stopped counter, whose functions can still be called', async () => {
    const { grownBytes, rows } = await printedBy(node, `
      const addon = require(${JSON.stringify(ADDON)})
      const count = async times => {
        let last
        for (let i = 0; i < times; i++) {
          last = new Counter(addon)
          last.hooks.stop()
          // Finalizers run in a turn of their own.
          if (i % 500 === 0) { gc(); await new Promise(setImmediate) }
        }
        gc()
        await new Promise(setImmediate)
        return last
      }
      count(2000).then(async () => {
        const before = process.memoryUsage.rss()
        const last = await count(8000)
        const grownBytes = process.memoryUsage.rss() - before
        last.hooks.stop()
        console.log('\\n' + JSON.stringify({ grownBytes, rows: last.take() }))
      })`)
    // A counter takes 5 KiB.
    expect(grownBytes).toBeLessThan(8000 * 5 * 1024 / 2)
    expect(rows).toEqual({})
  })

  it('counts in short-lived workers, whether they exit or are terminated', async () => {
    const { counts } = await printedBy(node, `
      const { Worker } = require('worker_threads')
      const counter = new Counter(require(${JSON.stringify(ADDON)}))
      const code = \`${LAYOUT.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}
        const { parentPort, workerData } = require('worker_threads')
        const counter = new Counter(require(${JSON.stringify(ADDON)}))
        for (let i = 0; i < 5; i++) gc()
        const rows = counter.take()
        parentPort.postMessage(Object.entries(rows).reduce((sum, [key, { count }]) => key.startsWith('4/') ? sum + count : sum, 0))
        if (workerData) setInterval(() => gc(), 1)\`
      const run = endless => new Promise((resolve, reject) => {
        const worker = new Worker(code, { eval: true, workerData: endless })
        let count
        worker.on('message', n => { count = n; if (endless) worker.terminate() })
        worker.on('error', reject)
        worker.on('exit', () => resolve(count))
      })
      ;(async () => {
        const counts = []
        for (let i = 0; i < 10; i++) counts.push(...await Promise.all([run(false), run(true)]))
        gc()
        counts.push(counter.take() && counter.majors > 0)
        console.log('\\n' + JSON.stringify({ counts }))
      })()`)
    expect(counts).toEqual([...Array(20).fill(5), true])
  }, 90_000)

  describe('the agent', () => {
    /** @type {Awaited<ReturnType<typeof startCollector>>} */
    let collector
    /** @type {ReturnType<typeof spawnBounded> | undefined} */
    let app
    beforeEach(async () => { collector = await startCollector() })
    afterEach(async () => {
      app?.child.kill('SIGKILL')
      await app?.ended
      await collector.stop()
    })

    const FORCES = 'for (let i = 0; i < 5; i++) gc(); setInterval(() => gc(), 40)'

    /**
     * @param {object} options
     * @param {string} [options.agent]
     * @param {string[]} [options.before]
     * @param {NodeJS.ProcessEnv} [options.env]
     * @param {string} [options.code]
     */
    const run = ({ agent = AGENT, before = [], env = {}, code = FORCES }) => {
      app = spawnBounded(node, ['--expose-gc', ...before, '-r', agent, '-e', code], {
        env: environment({
          NODE_DEBUG: 'memwatch', // prints errors of the agent
          MEMWATCH_SOCKET: collector.address,
          MEMWATCH_INTERVAL_SECONDS: '0.1',
          ...env
        })
      })
    }
    /** @returns {Promise<any>} the hello, as soon as frames contain the app's counts */
    const helloOf = async () => {
      const { hello, values } = await collector.until(connections => {
        const { hello, frames } = connections.at(-1) ?? { frames: [] }
        const values = frames.at(-1)?.values
        return hello && values?.gc['major/forced']?.[0] > 10 && { hello, values }
      })
      const { agentErrors } = values
      expect({ agentErrors, printed: agentErrors && app?.printed() })
        .toEqual({ agentErrors: 0, printed: 0 })
      return hello
    }
    /**
     * Creates a copy of the agent, like `memwatch install-agent`.
     * @param {(addon: string) => void} change receives the path of its addon
     * @returns {string} path to preload
     */
    const installed = change => {
      const at = fs.mkdtempSync(path.join(folder, 'installed-'))
      const { link } = installAgent(at)
      const addon = fs
        .readdirSync(fs.realpathSync(link), { recursive: true })
        .map(name => path.join(fs.realpathSync(link), String(name)))
        .find(name => name.endsWith(path.basename(ADDON)))
      change(/** @type {string} */ (addon))
      return path.join(link, 'index.js')
    }
    /**
     * @param {string} file
     * @param {Buffer} content
     */
    const replace = (file, content) => {
      fs.rmSync(file)
      fs.writeFileSync(file, content)
    }

    it('agrees with the observer even if an observer of the app delays entries', async () => {
      // The app runs a GC while the agent loads, and the observer has not received the entry of
      // this GC yet.
      run({
        code: `
          new (require('perf_hooks').PerformanceObserver)(() => {}).observe({ type: 'gc' })
          const blockUntil = performance.now() + 500
          const block = () => {
            for (let i = 0; i < 5; i++) gc()
            if (performance.now() < blockUntil) setTimeout(block, 0)
          }
          block()
          setInterval(() => gc(), 20)`
      })
      const hello = await helloOf()
      expect([hello.gcCounter, collector.connections.length]).toEqual(['hooks', 1])
      await collector.until(([{ frames }]) => frames.length > 10)
      expect(collector.connections).toHaveLength(1)
    })

    it('uses the hooks, and disconnects the observer after the check', async () => {
      const counts = path.join(folder, 'observers.js')
      fs.writeFileSync(counts, `
        const { PerformanceObserver } = require('perf_hooks')
        const { observe, disconnect } = PerformanceObserver.prototype
        let observers = 0
        PerformanceObserver.prototype.observe = function (...args) {
          observers++
          return observe.apply(this, args)
        }
        PerformanceObserver.prototype.disconnect = function () {
          if (--observers === 0) console.log('no observer')
          return disconnect.call(this)
        }`)
      run({ before: ['-r', counts] })
      const hello = await helloOf()
      expect([hello.gcCounter, hello.gcHooksMissing]).toEqual(['hooks', undefined])
      await app?.said('no observer')
      expect(collector.connections).toHaveLength(1)
    })

    it('uses the hooks in an installed copy of the agent', async () => {
      run({ agent: installed(() => {}) })
      expect(await helloOf()).toMatchObject({ gcCounter: 'hooks' })
    })

    it.each(/** @type {[string, string, () => Parameters<typeof run>[0]][]} */ ([
      ['off', 'MEMWATCH_GC_HOOKS is off', () => ({ env: { MEMWATCH_GC_HOOKS: 'off' } })],
      [
        'no_addon',
        'the addon is not installed',
        () => ({ agent: installed(addon => fs.rmSync(addon)) })
      ],
      [
        'not_loaded',
        'it cannot be loaded',
        () => ({ agent: installed(addon => replace(addon, Buffer.from('no binary'))) })
      ],
      ...['AddGCEpilogue', 'RemoveGCPrologue', 'GetHeapSpaceStatistics', 'uv_hrtime'].map(name => [
        'no_symbols',
        `Node.js exports ${name} no longer`,
        () => ({
          agent: installed(addon => replace(addon, Buffer.from(
            fs.readFileSync(addon, 'latin1').replace(name, name.replace(/.$/, 'X')), 'latin1'
          )))
        })
      ]),
      ['addons_disabled', 'addons are disabled', () => ({ before: ['--no-addons'] })]
    ]))('uses the observer, with the reason %s, if %s', async (reason, _, options) => {
      run(options())
      const hello = await helloOf()
      expect([hello.gcCounter, hello.gcHooksMissing]).toEqual(['observer', reason])
    })

    it.each([
      ['miss GCs', 'take: out => { hooks.take(out); out[0] = 0 }'],
      [
        'count GCs twice',
        'take: out => { hooks.take(out); for (let i = 0; i < out[0]; i++) out[4 + i * ROW_LENGTH + 2] *= 2 }'
      ],
      [
        'report another kind',
        'take: out => { hooks.take(out); for (let i = 0; i < out[0]; i++) out[4 + i * ROW_LENGTH] *= 2 }'
      ],
      ['read another live heap', 'readLiveHeap: spaces => hooks.readLiveHeap(spaces) * 2'],
      ['read none', 'readLiveHeap: () => undefined'],
      ['have other columns', 'takenLength: hooks.takenLength + 1']
    ])('uses the observer from then on if hooks %s', async (_, lie) => {
      const liar = path.join(fs.mkdtempSync(path.join(folder, 'liar-')), 'liar.js')
      fs.writeFileSync(liar, `
        const addon = require(${JSON.stringify(ADDON)}), { countGcs } = addon, ROW_LENGTH = ${ROW_LENGTH}
        addon.countGcs = () => { const hooks = countGcs(); return { ...hooks, ${lie} } }`)
      run({ before: ['-r', liar] })
      await collector.until(connections => {
        const { hello, frames } = connections.at(-1) ?? { frames: [] }
        return hello?.gcHooksMissing === 'disagreed' && hello.gcCounter === 'observer' &&
          frames.at(-1)?.values.gc['major/forced']?.[0] > 10
      })
      const frames = collector.connections.at(-1)?.frames ?? []
      const [first, later] = await collector.until(
        () => frames.length > 6 && [frames[2], frames.at(-1)]
      )
      const forced = ({ values }) => values.gc['major/forced'][0]
      const most = (later.uptimeSeconds - first.uptimeSeconds) / 0.04 + 2
      expect(forced(later)).toBeGreaterThan(forced(first))
      expect(forced(later) - forced(first)).toBeLessThan(most)
      expect(later.values.liveHeapMajors).toBeGreaterThan(0)
      expect(later.values.agentErrors).toBe(0)
    })
  })
})

describe('the comparison with an observer', () => {
  it('agrees if both counted the same GC', () => {
    const check = new GcCheck()
    expect(check.compare(true)).toBeUndefined()
    check.addCounted(1, 0, 1, true)
    expect(check.compare(true)).toBeUndefined()
    check.addObserved(1, 0)
    expect(check.compare(false)).toBe(true)
  })
  it('agrees once the observer has caught up', () => {
    const check = new GcCheck()
    check.addCounted(1, 0, 3, true)
    check.addObserved(1, 0)
    expect(check.compare(false)).toBeUndefined()
    check.addObserved(1, 0)
    check.addObserved(1, 0)
    expect(check.compare(false)).toBe(true)
  })
  it('agrees after some frames if the app collects again before each frame', () => {
    const check = new GcCheck()
    check.addCounted(1, 0, 10, true)
    const compared = Array.from({ length: CONSISTENT_FRAMES + 1 }, () => {
      const now = check.compare(true)
      for (let i = 0; i < 10; i++) check.addObserved(1, 0)
      check.addCounted(1, 0, 10, true)
      return now
    })
    expect(compared).toEqual([...Array(CONSISTENT_FRAMES).fill(undefined), true])
  })
  it('disagrees if the observer lacks a GC that was counted before the previous frame', () => {
    const check = new GcCheck()
    check.addCounted(1, 0, 2, true)
    check.addObserved(1, 0)
    for (let turn = 0; turn < 10; turn++) expect(check.compare(false)).toBeUndefined()
    expect([check.compare(true), check.compare(true)]).toEqual([undefined, false])
  })
  it('disagrees if the hooks count twice as many GCs', () => {
    const check = new GcCheck()
    const compared = Array.from({ length: 4 }, () => {
      check.addCounted(1, 0, 20, true)
      for (let i = 0; i < 10; i++) check.addObserved(1, 0)
      return check.compare(true)
    })
    expect(compared).toContain(false)
    expect(compared).not.toContain(true)
  })
  it('ignores GCs that may be older than the observer', () => {
    const check = new GcCheck()
    check.addCounted(4, 4, 2, false)
    for (let frame = 0; frame < 10; frame++) expect(check.compare(true)).toBeUndefined()
    check.addObserved(4, 4)
    check.addCounted(1, 0, 1, true)
    check.addObserved(1, 0)
    expect(check.compare(true)).toBe(true)
  })
  it('disagrees at once if the observer has a GC that was not counted', () => {
    const check = new GcCheck()
    check.addCounted(1, 0, 1, true)
    check.addObserved(1, 2)
    expect(check.compare(false)).toBe(false)
  })
})

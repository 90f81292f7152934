'use strict'

const { NODES, versionOf, startCollector, spawnWatched } = require('../support/agent-collector')

const MIB = 2 ** 20
const MARKS_THE_START = require.resolve('../support/marks-gc-start')

const COUNTERS = /** @type {const} */ ([['hooks', 'on'], ['observer', 'off']])
const EACH = NODES.flatMap(node =>
  COUNTERS.map(([counter, hooks]) => [versionOf(node), counter, node, hooks])
)

describe.each(EACH)('on Node %s, by the %s,', (_, counter, node, hooks) => {
  /**
   * Returns the last frame of a script.
   * @param {string[]} args
   * @param {string[]} [before]
   */
  async function lastFrameOf (args, before) {
    const collector = await startCollector()
    try {
      const { code, stdout, stderr } = await spawnWatched({
        node,
        before,
        args,
        socket: collector.address,
        env: { MEMWATCH_INTERVAL_SECONDS: '0.1', MEMWATCH_GC_HOOKS: hooks }
      }).ended
      expect([code, stderr]).toEqual([0, ''])
      const [{ hello, frames }] = collector.connections
      expect(hello.gcCounter).toBe(counter)
      return { stdout, frames, values: frames.at(-1).values }
    } finally {
      await collector.stop()
    }
  }

  /**
   * @param {Record<string, [count: number]>} gc
   * @param {string} prefix
   */
  const count = (gc, prefix) =>
    Object.entries(gc).reduce((sum, [key, [n]]) => (key.startsWith(prefix) ? sum + n : sum), 0)

  it.each([
    ['in one turn of the loop', 'for (let i = 0; i < 40; i++) gc(); setTimeout(() => {}, 150)'],
    [
      'over many turns',
      'let i = 0; (function next () { if (i++ < 40) { gc(); setImmediate(next) } else ' +
        'setTimeout(() => {}, 150) })()'
    ],
    [
      'in the second to last turn',
      'setTimeout(() => { for (let i = 0; i < 40; i++) gc(); setTimeout(() => {}, 1) }, 150)'
    ]
  ])('counts each of 40 forced majors %s', async (_, code) => {
    const { gc } = (await lastFrameOf(['--expose-gc', '-e', code])).values
    expect(gc['major/forced'][0]).toBe(40)
    const [n, seconds, longest, buckets] = gc['major/forced']
    expect(buckets.reduce((sum, inBucket) => sum + inBucket)).toBe(n)
    expect(seconds).toBeGreaterThan(0)
    expect(longest).toBeLessThanOrEqual(seconds)
  })

  it('distinguishes forced scavenges from others', async () => {
    const { gc } = (
      await lastFrameOf([
        '--expose-gc',
        '-e',
        "for (let i = 0; i < 25; i++) gc({ type: 'minor' }); setTimeout(() => {}, 150)"
      ])
    ).values
    expect(gc['minor/forced'][0]).toBe(25)
  })

  it('counts as many scavenges as --trace-gc prints', async () => {
    const {
      stdout,
      values: { gc }
    } = await lastFrameOf(
      [
        '--trace-gc',
        '--max-semi-space-size=1',
        '-e',
        `
      const kept = []
      let rounds = 0
      const timer = setInterval(() => {
        for (let i = 0; i < 30000; i++) kept[i % 1000] = { i, text: 'n' + i }
        if (++rounds < 30) return
        clearInterval(timer)
        require('fs').writeSync(1, 'DONE\\n')
        setTimeout(() => {}, 100)
      }, 5)`
      ],
      ['-r', MARKS_THE_START]
    )
    const traced = stdout.slice(stdout.indexOf('COUNTED'))
    const scavenges = (/** @type {string} */ text) => (text.match(/ ms: Scavenge/g) ?? []).length
    const [atLeast, atMost] = [
      scavenges(traced.slice(0, traced.indexOf('DONE'))),
      scavenges(traced)
    ]
    expect(atLeast).toBeGreaterThan(15)
    // Events after the last frame are not included.
    expect(count(gc, 'minor/')).toBeGreaterThanOrEqual(atLeast)
    expect(count(gc, 'minor/')).toBeLessThanOrEqual(atMost)
  })

  it('distinguishes major GCs that Buffers cause', async () => {
    const { gc } = (await lastFrameOf(['-e', `
      let rounds = 0
      const kept = []
      const timer = setInterval(() => {
        for (let i = 0; i < 60; i++) kept[i % 40] = Buffer.alloc(${2 * MIB}, 1)
        if (++rounds === 8) { clearInterval(timer); setTimeout(() => {}, 100) }
      }, 10)`])).values
    expect(gc['major/external'][0]).toBeGreaterThan(0)
    expect(gc['major/forced']).toBeUndefined()
  })

  it('reads the exact live heap after a major GC', async () => {
    // A second between the steps: a busy machine delays frames.
    const { stdout, frames } = await lastFrameOf([
      '--expose-gc',
      '-e',
      `
      const used = () => require('v8').getHeapSpaceStatistics().reduce((sum, s) => s.space_name.startsWith('new_') ? sum : sum + s.space_used_size, 0)
      const say = () => require('fs').writeSync(1, used() + ' ')
      gc(); gc(); say()
      setTimeout(() => {
        globalThis.kept = Array.from({ length: 50 * 16 }, (_, i) => Array.from({ length: 8192 }, (_, j) => i * j))
        gc(); gc(); say()
        setTimeout(() => { globalThis.kept = null; gc(); gc(); say(); setTimeout(() => {}, 1000) }, 1000)
      }, 1000)`
    ])
    const truth = stdout.trim().split(' ').map(Number)
    expect(truth[1] - truth[0]).toBeGreaterThan(45 * MIB)
    const readings = [
      ...new Map(
        frames
          .filter(({ values }) => 'liveHeapBytes' in values)
          .map(({ values }) => [values.liveHeapMajors, values.liveHeapBytes])
      )
    ]
    // V8 may have run major GCs of its own during the allocation of 50 MB.
    const bytes = readings.map(([, bytes]) => bytes)
    const read = [bytes[0], Math.max(...bytes), bytes.at(-1)]
    for (const i of [0, 1, 2]) expect(Math.abs(read[i] - truth[i])).toBeLessThan(MIB)
  })
})

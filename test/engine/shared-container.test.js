'use strict'

const { findCase } = require('../../engine/verdicts/case')
const { Targets } = require('../../engine/history/targets')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { patchOf } = require('../../engine/fixes/patch')
const { signalsOf } = require('../../engine/signals')
const { hello, frame, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { defined } = require('../support/defined')

const LIMIT_MIB = 700
const values = ({
  rssMib = 90,
  heapMib = 30,
  liveMib = 20,
  heapLimitMib = 362,
  limitMib = LIMIT_MIB,
  majors = 1
} = {}) => ({
  rssBytes: rssMib * MIB,
  rssAnonBytes: (rssMib - 45) * MIB,
  heapPhysicalBytes: heapMib * MIB,
  heapSizeLimitBytes: heapLimitMib * MIB,
  externalBytes: MIB,
  liveHeapBytes: liveMib * MIB,
  liveHeapMajors: majors,
  ...(limitMib && { containerLimitBytes: limitMib * MIB })
})

/** Processes of one container, which advance second by second. */
function watch (hellos) {
  const targets = new Targets({ now: () => 0 })
  const sessions = hellos.map((changes, i) =>
    openSession(targets, hello({ pid: 100 + i, host: 'box', cgroup: '7', ...changes }), () => {})
  )
  let second = 0
  /** @param {(i: number) => object} [of] */
  const step = (of = () => ({})) => {
    second++
    sessions.forEach((session, i) =>
      session.frame(frame({ sequence: second, uptimeSeconds: second, values: values(of(i)) }))
    )
    for (const target of targets.all) evaluate(target)
  }
  const verdict = (i, id) =>
    defined(findCase(sessions[i].target).verdicts.find(({ diagnosis }) => diagnosis === id))
  const signals = i => signalsOf(defined(sessions[i].target.window()))
  return { targets, sessions, step, verdict, signals }
}
const live = (app, seconds, of) => { for (let t = 1; t <= seconds; t++) app.step(i => of(t, i)) }
const alone = index => Array.from({ length: index }, () => ({}))

describe('a worker whose heap grows', () => {
  const leak = (perSecond, connected = true) => {
    const { sessions, verdict } = watch(perSecond.map((_, threadId) => ({ pid: 100, threadId })))
    for (let t = 1; t <= 60; t++) {
      const heapsMib = perSecond.map(mib => 10 + mib * t)
      sessions.forEach((session, i) => {
        const heapBytes = heapsMib[i] * MIB
        session.frame(frame({
          sequence: t,
          uptimeSeconds: t,
          values: {
            heapPhysicalBytes: heapBytes,
            heapSizeLimitBytes: 2000 * MIB,
            liveHeapBytes: heapBytes,
            liveHeapMajors: t,
            spaces: { old_space: [heapBytes, heapBytes, 0, heapBytes] },
            // Only the main thread knows them.
            ...(i === 0 && {
              rssBytes: (90 + heapsMib[0] + heapsMib[1] + heapsMib[2]) * MIB,
              containerLimitBytes: 820 * MIB
            })
          }
        }))
        session.target.connected = connected || i > 0
        evaluate(session.target)
      })
    }
    return verdict(1, 'js-heap-leak')
  }
  it.each([
    ['alone, has all room of its container', [0, 2, 0], true, 290,
      / would reach the container limit /],
    ['like another, has half of it', [0, 2, 2], true, 115, / would reach the container limit /],
    // Its own limit is an hour away, which is not told before longer growth.
    ['much slower than another, is told no time', [0, 0.5, 6], true, null, /0 MiB\/min: a leak/],
    ['without a connected main thread as well', [0, 2, 2], false, 910,
      / would reach the heap size limit /]
  ])('%s', (_, perSecond, connected, secondsLeft, text) => {
    const found = leak(perSecond, connected)
    expect(found).toMatchObject({ summary: expect.stringMatching(text) })
    const left = found.secondsLeft === null ? null : Math.round(found.secondsLeft / 5) * 5
    expect(left).toBe(secondsLeft)
  })
})

describe('processes that share a container', () => {
  it.each([[100, 'info'], [180, 'warning']])(
    'with heap limits far above it, of %i MiB each: %s', (rssMib, severity) => {
      const app = watch(alone(4))
      live(app, 6, () => ({ rssMib, heapLimitMib: 4144 }))
      const { evidence, ...found } = app.verdict(0, 'container-limit-mismatch')
      expect(found).toMatchObject({ state: 'confirmed', severity })
      expect(evidence.map(({ text }) => text).join(' ')).toMatch(
        /RSS is \d+ MiB in the median .*, and \d+ MiB with the other processes of the container\. /
      )
    }
  )
  it('are judged together: the sum of five heaps exceeds it, although each one fits', () => {
    const app = watch(alone(5))
    live(app, 6, () => ({}))
    // Anonymous memory: 4 × 45 MiB and 90 MiB of the first process, 270 MiB in all. Of these 150
    // are heap and 120 other memory.
    expect(app.verdict(0, 'container-limit-mismatch')).toMatchObject({
      state: 'suspected',
      summary:
        "5 processes share the container's 700 MiB: their heaps may grow to 1810 MiB, and " +
          'they use 120 MiB outside the heaps.'
    })
  })
  it.each([
    [3, 100, 'ok'],
    [3, 135, 'suspected'],
    [4, 60, 'suspected']
  ])('%d of them with heap limits of 362 of 700 MiB and an RSS of %d MiB are %s',
    (count, rssMib, state) => {
      const app = watch(alone(count))
      live(app, 6, () => ({ rssMib }))
      expect(app.verdict(0, 'container-limit-mismatch').state).toBe(state)
    })
  it('that fill it are a confirmed mismatch, and not one second earlier', () => {
    const usedRatio = rssMib => (45 + 5 * (rssMib - 45)) / LIMIT_MIB
    const stateAt = rssMib => {
      const app = watch(alone(5))
      live(app, 8, () => ({ rssMib, heapMib: rssMib - 60 }))
      return app.verdict(0, 'container-limit-mismatch').state
    }
    expect([usedRatio(155), stateAt(155)]).toEqual([0.85, 'confirmed'])
    expect(stateAt(154)).toBe('suspected')
  })
  it('get heap sizes whose sum fits', () => {
    const app = watch(alone(5))
    live(app, 6, () => ({}))
    const sizes = app.sessions.map((_, i) =>
      defined(
        app.verdict(i, 'container-limit-mismatch').fix.find(({ change }) => change.flag)
      )
    )
    const flags = sizes.map(({ change: { flag } }) =>
      Number(/--max-old-space-size=(\d+)/.exec(String(flag))?.[1])
    )
    expect(new Set(flags).size).toBe(1)
    expect(5 * flags[0] + 120).toBeLessThanOrEqual(LIMIT_MIB)
    expect(flags[0]).toBeGreaterThanOrEqual(48)
    expect(sizes[0].risk).toContain('The value suits each of the 5 processes of the container.')
  })
  it('get one heap size, which a variable may set, if it suits the largest live heap', () => {
    const changesAt = liveMib => {
      const app = watch(alone(4))
      live(app, 6, (_, i) => ({
        rssMib: [60, 170, 180, 190][i],
        heapMib: [10, 120, 125, 130][i],
        liveMib: [8, 40, 45, liveMib][i]
      }))
      return [1, 2, 3].map(i =>
        defined(app.verdict(i, 'container-limit-mismatch').fix.find(({ change }) => change.flag)))
    }
    const common = changesAt(55)
    expect(new Set(common.map(({ change }) => change.flag)).size).toBe(1)
    expect(common.map(({ change }) => change.env?.NODE_OPTIONS)).toEqual(
      common.map(({ change }) => change.flag))
    const own = changesAt(100)
    expect(own.map(({ change }) => change.env)).toEqual([undefined, undefined, undefined])
    for (const { risk } of own) {
      expect(risk).toContain('4 processes share it, and each needs its own limit.')
    }
  })
  it('get parts in proportion to their memory, whose sum is the limit', () => {
    const app = watch(alone(3))
    live(app, 3, (_, i) => ({ rssMib: [100, 200, 300][i] }))
    const parts = app.sessions.map((_, i) => defined(app.signals(i).containerShareBytes) / MIB)
    expect(parts[0]).toBeLessThan(parts[1])
    expect(parts[1]).toBeLessThan(parts[2])
    expect(parts.reduce((sum, part) => sum + part - 45, 45)).toBeCloseTo(LIMIT_MIB)
  })
  it('judge a small one, like the primary of a cluster, by the larger ones', () => {
    const verdictsAt = rssMib => {
      const app = watch(alone(4))
      live(app, 6, (_, i) => i === 0 ? { rssMib, heapMib: 10 } : { rssMib: 180, heapMib: 120 })
      return [0, 1].map(i => app.verdict(i, 'container-limit-mismatch'))
    }
    const states = rssMib => verdictsAt(rssMib).map(({ state }) => state)
    expect(states(120)).toEqual(['suspected', 'suspected'])
    expect(states(50)).toEqual(['ok', 'suspected'])
    expect(verdictsAt(50)[0].summary).toBe(
      "4 processes share the container's 700 MiB, and this one holds 50 MiB of it: the " +
        'verdict is on the larger processes'
    )
  })
  it('are reported as fitting if their sum fits', () => {
    const app = watch(alone(2))
    live(app, 6, () => ({ heapLimitMib: 200 }))
    expect(app.verdict(0, 'container-limit-mismatch')).toMatchObject({
      state: 'ok',
      summary:
        "2 processes share the container's 700 MiB: full heaps (400 MiB) and the memory " +
          'outside the heaps (75 MiB) fit'
    })
  })
  it('with default heaps are not suspected before they use seven tenths of it', () => {
    const stateAt = rssMib => {
      const app = watch(alone(2))
      live(app, 6, () => ({ rssMib, heapMib: rssMib - 60 }))
      return app.verdict(0, 'container-limit-mismatch').state
    }
    expect((45 + 2 * 223) / LIMIT_MIB).toBeGreaterThan(0.7)
    expect([stateAt(267), stateAt(268)]).toEqual(['ok', 'suspected'])
  })
  it.each([
    ['of another cgroup', { cgroup: '8' }],
    ['of another host', { host: 'elsewhere' }],
    ['of another pod, whatever cgroup it claims', { pod: { uid: 'b' } }],
    ['whose agent tells no cgroup', { cgroup: undefined }]
  ])('do not include one %s', (_, changes) => {
    const app = watch([{}, changes])
    live(app, 3, () => ({}))
    expect(app.sessions.map((_, i) => app.signals(i).containerProcesses)).toEqual([1, 1])
  })
  it('do not include one that sees another limit', () => {
    const app = watch(alone(2))
    live(app, 3, (_, i) => ({ limitMib: i === 0 ? 700 : 701 }))
    expect(app.signals(0).containerProcesses).toBe(1)
  })
  it('are distinguished by container name if agents report no cgroup', () => {
    const pod = container => ({ cgroup: undefined, pod: { uid: 'a', container } })
    const app = watch([pod('web'), pod('web'), pod('log')])
    live(app, 3, () => ({}))
    expect(app.sessions.map((_, i) => app.signals(i).containerProcesses)).toEqual([2, 2, 1])
  })
  it('no longer include one whose connection ended', () => {
    const app = watch(alone(2))
    live(app, 3, () => ({}))
    app.sessions[1].closed(false)
    expect(app.signals(0).containerProcesses).toBe(2)
    app.sessions[0].frame(frame({ sequence: 9, uptimeSeconds: 9, values: values() }))
    expect(app.signals(0).containerProcesses).toBe(1)
  })
  it('include heaps of worker threads', () => {
    const app = watch([{}, { pid: 100, threadId: 1, cgroup: undefined }])
    live(app, 6, () => ({ limitMib: 400 }))
    expect([app.signals(0).containerProcesses, app.signals(0).containerHeaps]).toEqual([1, 2])
    expect(app.verdict(0, 'container-limit-mismatch')).toMatchObject({
      state: 'ok',
      summary:
        "2 heaps of this process share the container's 400 MiB: full heaps (724 MiB) and the " +
          'other memory (30 MiB) would not fit, but all together use only 23 % of the limit'
    })
  })
  it('have an exact sum up to a bound, whatever agents claim', () => {
    const targets = new Targets({ now: () => 0 })
    const sessions = Array.from({ length: 300 }, (_, pid) =>
      openSession(targets, hello({ pid, host: 'box', cgroup: '7' }), () => {})
    )
    for (const session of sessions) {
      session.frame(frame({ values: { ...values(), rssAnonBytes: 2 ** 53 } }))
    }
    sessions[299].frame(frame({ sequence: 2, values: values() }))
    expect(targets.all[299].neighbours).toMatchObject({ processes: 256, memoryBytes: 2 ** 53 })
  })
})

describe('the fix of a process that shares a container', () => {
  /**
   * Reads the fix of one process.
   * @param {number} i
   * @param {number[]} liveMib of each process
   */
  function fixOf (i, liveMib, heapLimitMib = 600) {
    const app = watch(alone(liveMib.length))
    live(app, 8, (_t, i) => ({
      liveMib: liveMib[i],
      heapMib: liveMib[i] + 10,
      rssMib: liveMib[i] + 80,
      heapLimitMib,
      limitMib: 1500
    }))
    return app.verdict(i, 'container-limit-mismatch').fix
  }

  it('is no variable if the heap size would be too small for another process', () => {
    const [{ change }] = fixOf(1, [400, 10, 10, 10])
    expect(change).toEqual({
      flag: expect.stringMatching(/^--max-old-space-size=\d+$/),
      note: expect.stringContaining('reach the other 3 processes of the container')
    })
    expect(() => patchOf(
      { title: '', change, risk: '' },
      /** @type {any} */ ({ target: 'shop', nodeOptions: [] }),
      'node-options'
    )).toThrow('A variable would reach')
  })
  it('is a variable if the heap size suits all processes', () => {
    const [{ change }] = fixOf(1, [130, 130, 130, 130])
    expect(change.env).toEqual({ NODE_OPTIONS: change.flag })
  })
  it('enlarges the container and limits each heap if the live heaps do not fit', () => {
    const [first, ...others] = fixOf(1, [400, 400, 400])
    const { memoryLimitBytes, ...flags } = first.change
    const bytes = defined(memoryLimitBytes)
    const oldMib = Number(/--max-old-space-size=(\d+)/.exec(String(flags.flag))?.[1])
    expect(first.title)
      .toBe(`Request ${bytes / MIB} MiB of memory, and limit the old space to ${oldMib} MiB`)
    expect(oldMib).toBeGreaterThan(400 / 0.75)
    // The shared pages of 45 MiB, and 25 MiB in each process, are outside the heaps.
    expect(3 * (oldMib + 25) + 45).toBeLessThanOrEqual(bytes / MIB)
    // A smaller heap in the present container would have no headroom.
    expect(others).toEqual([])
  })
  it('enlarges the container also if each process has its own limit', () => {
    const [{ change }] = fixOf(1, [1000, 300, 300])
    expect(change).toEqual({
      flag: expect.stringMatching(/^--max-old-space-size=\d+$/),
      memoryLimitBytes: expect.any(Number),
      note: expect.stringContaining('reach the other 2 processes of the container')
    })
  })
  it('of memory.high, which has no shares, lowers the heap limit of each process', () => {
    const { diagnoses } = require('../../engine/diagnoses')
    const { fix, limits } = defined(
      diagnoses.find(({ id }) => id === 'container-limit-mismatch')
    )
    const finding = {
      limitBytes: 1000 * MIB,
      shareBytes: 1000 * MIB,
      besideBytes: 50 * MIB,
      heapLimitBytes: 600 * MIB,
      rssBytes: 300 * MIB,
      liveBytes: 100 * MIB,
      heaps: 2,
      ownHeaps: 1,
      processes: 2,
      othersLiveBytes: 100 * MIB,
      othersBesideBytes: 50 * MIB,
      semiSpaceBytes: 16 * MIB
    }
    expect(fix(finding, hello(), limits)[0].title).toMatch(/^Limit the old space to/)
  })
  it('does not raise a heap limit that fits the share of its process', () => {
    const fix = fixOf(0, [400, 10, 10, 10])
    expect(fix).toEqual([expect.objectContaining({
      title: 'Keep the heap limit of this process, and lower those of the others',
      change: {
        code: expect.stringMatching(/600 MiB, is small enough.* fit into 1500 MiB\.$/)
      }
    })])
  })
})

describe('a leak in a shared container', () => {
  const SECONDS = 120
  const leaking = (t, i, leaks) => leaks(i)
    ? { rssMib: 60 + t / 2, heapMib: 10 + t / 2, liveMib: 5 + t / 2, majors: t, heapLimitMib: 1000 }
    : { majors: t, heapLimitMib: 1000 }
  const runway = (count, leaks) => {
    const app = watch(alone(count))
    live(app, SECONDS, (t, i) => leaking(t, i, leaks))
    const { heapRunwayBytes, liveHeapTrend } = app.signals(0)
    return {
      seconds: defined(heapRunwayBytes) / defined(liveHeapTrend).slope,
      app
    }
  }

  it('has less time, because its neighbours use part of the room', () => {
    const freeMib = LIMIT_MIB - 60 - SECONDS / 2
    const one = runway(1, () => true).seconds
    const five = runway(5, i => i === 0).seconds
    expect(one).toBeCloseTo((freeMib + 5) / 0.5, -1)
    expect(five).toBeCloseTo((freeMib + 5 - 4 * 45) / 0.5, -1)
  })
  it('leaves half of the free memory to RSS if two leak, whatever part of it is heap', () => {
    const { app } = runway(2, () => true)
    const { rssRunwayBytes, rssTrend, outsideHeapTrend } = app.signals(0)
    expect(defined(outsideHeapTrend).slope).toBe(0)
    const leftMib = LIMIT_MIB - 45 - 2 * (15 + SECONDS / 2)
    expect(defined(rssRunwayBytes) / MIB).toBeCloseTo(leftMib / 2, -1)
    expect(defined(rssRunwayBytes) / defined(rssTrend).slope).toBeCloseTo(leftMib, -2)
  })
  it('has a fifth of the time if all five leak', () => {
    const { seconds, app } = runway(5, () => true)
    const leftMib = LIMIT_MIB - 45 - 5 * (15 + SECONDS / 2)
    expect(seconds).toBeGreaterThan(leftMib / 2.5 * 0.9)
    expect(seconds).toBeLessThan((leftMib + 5) / 2.5 * 1.1)
    const { summary, evidence } = app.verdict(0, 'js-heap-leak')
    expect(summary).toMatch(/the container limit in about .*, as 5 processes share it\b/)
    expect(evidence.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(
        /^5 processes share the container: of its free memory, this one can use at most \d+ MiB\.$/
      )
    )
  })
})

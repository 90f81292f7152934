'use strict'

const { changeSizes, helmValues } = require('../../engine/fixes/change-sizes')
const { patchOf } = require('../../engine/fixes/patch')
const { diagnoses } = require('../../engine/diagnoses')
const { tailLevel } = require('../../engine/statistics/tail-level')
const { SizeDays } = require('../../engine/v8/size-days')
const { rightSize, LEAKS } = require('../../engine/v8/right-size')
const { readNodeVersion } = require('../../engine/v8/node-versions')
const { VpaRecommender } = require('../../bench/vpa-recommender')
const { METHODS, backtest, live } = require('../../bench/right-size')
const { defined } = require('../support/defined')
const { hello, MIB } = require('../support/frames')

const DAY = 86_400
/** Start of a day in UTC. */
const START = 1_759_708_800

/** Creates days of one container, with a reading every ten minutes. */
function history (count, { liveMib = 200, besideMib = 80, garbageMib = 60, of = {} } = {}) {
  const days = new SizeDays({ stepSeconds: 600 })
  for (let t = 0; t < count * DAY; t += 600) {
    const extra = of[Math.floor(t / DAY)] ?? 0
    days.add('pod', {
      unixSeconds: START + t,
      ownBytes: (liveMib + extra + garbageMib + besideMib) * MIB,
      liveHeapBytes: (liveMib + extra) * MIB,
      heapUsedBytes: (liveMib + extra + garbageMib) * MIB,
      besideBytes: besideMib * MIB
    })
  }
  return days
}
const running = (node, nodeOptions = []) => ({
  version: readNodeVersion(node),
  flags: { nodeOptions, execArgv: [] },
  host: { bytes: 16 * 2 ** 30, given: true },
  cgroup: /** @type {const} */ ('v2'),
  limitOnParent: false
})
const size = (days, changes = {}) => rightSize({
  days,
  leaks: [],
  deaths: [],
  present: { memoryLimitBytes: 1024 * MIB, heapSizeLimitBytes: 524 * MIB },
  process: running('22'),
  ...changes
})
const sized = (days, changes) => defined(size(days, changes).sizes)

describe('tailLevel', () => {
  it('is the highest value if there are too few values for an estimate', () => {
    expect([tailLevel([], 0.001), tailLevel([3, 5], 0.001)]).toEqual([-Infinity, 5])
  })
  it('is the quantile of an exponential tail above the median', () => {
    expect(tailLevel([100, 100, 110, 100, 110], 0.001)).toBeCloseTo(100 + 10 * Math.log(500))
  })
  it('does not take quiet weekends for a wide tail', () => {
    expect(tailLevel([900, 901, 900, 901, 900, 300, 300], 0.001)).toBeLessThan(910)
  })
})

describe('sizes of days', () => {
  it('leave room for a full heap and other memory, so V8 collects before the kernel kills', () => {
    const { limitBytes, oldBytes, semiSpaceBytes, requestBytes, flags } = sized(history(7))
    expect(oldBytes).toBeGreaterThan(200 * MIB / 0.8)
    expect(oldBytes + 3 * semiSpaceBytes + 80 * MIB).toBeLessThan(0.92 * limitBytes)
    expect(requestBytes).toBeLessThanOrEqual(limitBytes)
    expect(requestBytes).toBeGreaterThan(340 * MIB)
    expect(flags).toEqual({
      '--max-old-space-size': oldBytes / MIB, '--max-semi-space-size': semiSpaceBytes / MIB
    })
  })
  it('omit a flag if V8 chooses the size by itself', () => {
    // In a container of 2.7 GiB V8 of Node 22 chooses 16 MiB.
    const { flags, unset } = sized(history(7, { liveMib: 20, garbageMib: 10, besideMib: 2200 }))
    expect(defined(unset).semiSpaceBytes).toBe(16 * MIB)
    expect(flags).not.toHaveProperty('--max-semi-space-size')
    expect(size(history(7, { liveMib: 20, garbageMib: 10, besideMib: 2200 })).reasons.semiSpace)
      .toBe('V8 chooses it by itself')
  })
  it('repeat all flags if the process sets some, which would stay in force', () => {
    const { flags } = sized(history(7, { liveMib: 20, garbageMib: 10, besideMib: 2200 }), {
      process: running('22', ['--max-old-space-size=4096'])
    })
    expect(Object.keys(flags)).toEqual(['--max-old-space-size', '--max-semi-space-size'])
  })
  it('are reduced only as far as the length of the history justifies', () => {
    const [short, week] = [0.02, 7].map(days => size(history(days)))
    expect([short.confidence, week.confidence]).toEqual(['low', 'high'])
    expect(defined(short.sizes).limitBytes).toBeGreaterThan(1.5 * defined(week.sizes).limitBytes)
    expect(short.notes[0]).toMatch(/^30 min of history, less than a week: the margin .* is 100 %/)
    expect(size(history(3)).confidence).toBe('medium')
    expect(week.notes.join()).not.toContain('less than a week')
  })
  it('cover a day that exceeds the others, as there may be a higher one', () => {
    const [even, spiky] = [{}, { 3: 150 }].map(of => sized(history(7, { of })).oldBytes)
    expect(spiky).toBeGreaterThan(even + 150 * MIB)
  })
  it('explain each number', () => {
    const { reasons, notes } = size(history(9))
    expect(reasons.request).toMatch(/^p99 of the minute peaks over 9 days: 340 MiB, plus a tenth/)
    expect(reasons.oldGeneration).toMatch(/^live heap at most 200 MiB over 9 days, planned for/)
    expect(reasons.limit).toMatch(/highest minute over 9 days: 340 MiB$/)
    expect(notes).toEqual([expect.stringMatching(/^The limit is 1024 MiB now: \d+ MiB less/)])
  })
  it('say that V8 would choose less than the live heap in this container', () => {
    const { notes } = size(history(7, { liveMib: 600, garbageMib: 100 }))
    expect(notes.join('\n')).toMatch(/Without --max-old-space-size V8 would limit .* to \d+ MiB/)
  })
  it('are the same for request and limit of a Guaranteed pod', () => {
    const { requestBytes, limitBytes } = sized(history(7), { guaranteed: true })
    expect(requestBytes).toBe(limitBytes)
  })
  it('treat a container with several processes as a whole', () => {
    const days = new SizeDays()
    for (let t = 0; t < DAY; t += 60) {
      for (const ownMib of [300, 200]) {
        days.add('pod', {
          unixSeconds: START + t,
          ownBytes: ownMib * MIB,
          othersBytes: (500 - ownMib) * MIB,
          liveHeapBytes: 150 * MIB,
          heapUsedBytes: 200 * MIB,
          besideBytes: 80 * MIB
        })
      }
    }
    const { sizes, notes } = size(days)
    expect(days.highest('memoryBytes')).toBe(500 * MIB)
    expect(defined(sizes).limitBytes).toBeGreaterThan(500 * MIB)
    expect(notes.join()).toContain('Several processes share the container')
  })
  it('treat several pods like the largest one', () => {
    const days = history(2)
    days.add('other', { unixSeconds: START, ownBytes: 900 * MIB, heapUsedBytes: 500 * MIB })
    expect([days.containers, days.highest('memoryBytes')]).toEqual([2, 900 * MIB])
    expect(days.length).toBeCloseTo(2)
  })
})

describe('deaths', () => {
  it('by the kernel prevent a lower limit', () => {
    const { sizes, notes } = size(history(9), {
      deaths: ['oom_kill'],
      present: { memoryLimitBytes: 1024 * MIB, heapSizeLimitBytes: 2096 * MIB }
    })
    expect(defined(sizes).limitBytes).toBe(1024 * MIB)
    expect(notes.join()).toContain(
      '1 death from memory in 9 days: 1 by the kernel (the limit is not lowered)'
    )
  })
  it('at sizes that fitted together raise the sizes', () => {
    const { limitBytes } = sized(history(9), { deaths: ['oom_kill'] })
    expect(limitBytes).toBeGreaterThanOrEqual(1.2 * 1024 * MIB)
  })
  it('by a full heap prevent a smaller heap', () => {
    expect(sized(history(9), { deaths: ['heap_oom'] }).oldBytes).toBeGreaterThanOrEqual(1.2 * 524 * MIB)
  })
})

it('no size fixes a leak', () => {
  const { state, sizes, notes } = size(history(9), { leaks: ['js-heap-leak'] })
  expect([state, sizes]).toEqual(['leak', null])
  expect(notes).toEqual([expect.stringMatching(/^No size fixes a leak: js-heap-leak is confirmed/)])
  expect(diagnoses.map(({ id }) => id)).toEqual(expect.arrayContaining([...LEAKS]))
})
it('no measurements are no history', () => {
  expect(size(new SizeDays())).toMatchObject({ state: 'no_history', sizes: null })
})

describe('the forms of sizes', () => {
  const process = hello({
    nodeOptions: ['--max-heap-size=300', '--enable-source-maps'],
    allowedFlags: ['--max-old-space-size', '--max-semi-space-size']
  })
  const sizes = sized(history(7))
  const flags = `--max-old-space-size=${sizes.oldBytes / MIB} --max-semi-space-size=16`
  it('are values of a chart', () => {
    expect(helmValues(changeSizes(sizes, process), ['Sizes'])).toBe(`# Sizes
env:
  - name: "NODE_OPTIONS"
    value: "--enable-source-maps ${flags}"
resources:
  requests:
    memory: "${sizes.requestBytes / MIB}Mi"
  limits:
    memory: "${sizes.limitBytes / MIB}Mi"
`)
  })
  it('are a patch', () => {
    const fix = { title: 'Sizes', change: changeSizes(sizes, process), risk: '' }
    const where = { workload: 'deployment/shop', container: 'app' }
    const patch = patchOf(fix, { target: 'shop', nodeOptions: [] }, 'kubernetes', where)
    expect(patch).toContain(`            requests:\n              memory: "${sizes.requestBytes / MIB}Mi"`)
    expect(patch).toContain('kind: "Deployment"')
    expect(patch).not.toContain('raise the request as well')
  })
  it('say that other options are unknown where the source has only metrics', () => {
    expect(helmValues(changeSizes(sizes), [])).toContain('# NODE_OPTIONS of the app is unknown')
  })
})

describe('the recommender of VPA', () => {
  it('computes the same as the code of kubernetes/autoscaler, including a kill', () => {
    const vpa = new VpaRecommender()
    /** Printed by vertical-pod-autoscaler v1.5.1 after each half day: target, lower, upper. */
    const published = [
      [865936536, 862478364, 2600218332], [865936536, 864206057, 1732474834],
      [865936536, 864782573, 1443494948], [865936536, 865070948, 1299055192],
      [865936536, 865244009, 1212407392], [865936536, 865359399, 1154648879],
      [865936536, 865441828, 1113396073], [865936536, 865503654, 1082458260],
      [1312092764, 1311509716, 1603713937], [1312092764, 1311568011, 1574547768],
      [1312092764, 716450601, 1550685210], [1312092764, 716472314, 1530800204],
      [1312092764, 716490686, 1513974757], [1312092764, 716506434, 1499553184],
      [865936536, 865705644, 1487054668], [865936536, 865720075, 1476118600],
      [1038683533, 1038439160, 1160891580], [1038683533, 1038452735, 1154101720]
    ]
    for (let m = 0; m < 9 * 1440; m++) {
      const day = Math.floor(m / 1440)
      const unixSeconds = 1_760_000_040 + 60 * m
      const weekend = [5, 6].includes(day % 7) ? 0.4 : 1
      const swing = 100 * (1 - Math.cos((2 * Math.PI * m) / 1440)) * weekend
      const spike = day === 4 && m % 1440 === 700 ? 350 : 0
      vpa.add(unixSeconds, Math.round(MIB * (500 + swing + ((m * 7919) % 97) / 9 + spike)))
      if (m === 8 * 1440 + 300) vpa.addKill(unixSeconds + 5, 700 * MIB)
      if (m % 720 !== 719) continue
      const { targetBytes, lowerBytes, upperBytes } = vpa.recommendation
      const expected = published[(m - 719) / 720]
      for (const [i, bytes] of [targetBytes, lowerBytes, upperBytes].entries()) {
        expect(Math.abs(bytes - expected[i])).toBeLessThan(10)
      }
    }
  })
})

it('a weekly job is killed at sizes from a day of history, but not at sizes from a week', () => {
  const scenario = {
    name: 'weekly job', base: 250, swing: 80, spike: 300, spikeEveryHours: 168, limit: 2048
  }
  const days = live(scenario, 9, 1)
  const vpa = backtest(scenario, METHODS['VPA, heap by a flag of the app'], days)
  const own = backtest(scenario, METHODS.memwatch, days)
  expect([vpa.killed, own.killed, own.full]).toEqual([1, 0, 0])
  expect(own.days).toBe(8)
})

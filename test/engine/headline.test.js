'use strict'

const path = require('node:path')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { findCase } = require('../../engine/verdicts/case')
const { headlineOf, summarize } = require('../../engine/verdicts/headline')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { judge } = require('../../engine/verdicts/judge')
const { diagnoses } = require('../../engine/diagnoses')
const { replayFile } = require('../../cli/sources/replay-file')
const { signalsOf } = require('../../engine/signals')
const { Target } = require('../../engine/history/target')
const { renderReport } = require('../../cli/watch/report')
const { terminalText } = require('../../cli/text/terminal')
const { hello, frame } = require('../support/frames')
const { defined } = require('../support/defined')

/**
 * Creates a verdict with the fields that a headline uses.
 * @param {string} diagnosis
 * @param {string} state
 * @param {object} [changes]
 */
const verdict = (diagnosis, state, changes = {}) =>
  /** @type {Parameters<typeof summarize>[0][number]} */ (/** @type {unknown} */ ({
    diagnosis,
    state,
    severity: 'critical',
    secondsLeft: null,
    evidence: [],
    opportunity: false,
    summary: `${diagnosis} is ${state}`,
    open: state === 'unknown' ? { until: 'readings', waitSeconds: null } : null,
    ...changes
  }))
/**
 * @param {string} diagnosis
 * @param {string} until
 * @param {number | null} [waitSeconds]
 * @param {object} [changes]
 */
const unknown = (diagnosis, until, waitSeconds = null, changes = {}) =>
  verdict(diagnosis, 'unknown', { open: { until, waitSeconds }, ...changes })
const warning = { severity: 'warning' }

describe('the headline', () => {
  const [leak, native] = [verdict('js-heap-leak', 'ok'), verdict('native-memory-leak', 'ok')]

  it.each([
    [
      'a confirmed finding before a suspected one',
      [verdict('js-heap-leak', 'suspected'), verdict('a', 'confirmed')],
      'confirmed',
      'Confirmed: a: a is confirmed Also suspected: js-heap-leak.'
    ],
    [
      'a confirmed symptom before a cause that the latest readings do not show',
      [
        verdict('js-heap-leak', 'suspected', { isHeld: true }),
        verdict('heap-limit-thrash', 'confirmed')
      ],
      'confirmed',
      'Confirmed: heap-limit-thrash: heap-limit-thrash is confirmed Also suspected: js-heap-leak.'
    ],
    [
      'that a finding of severity info is not urgent',
      [verdict('a', 'confirmed', { severity: 'info' })],
      'confirmed',
      'Confirmed, not urgent: a: a is confirmed'
    ],
    [
      'the open checks beside a finding that is not urgent',
      [verdict('a', 'confirmed', { severity: 'info' }), unknown('js-heap-leak', 'readings')],
      'confirmed',
      'Confirmed, not urgent: a: a is confirmed Still open: js-heap-leak.'
    ],
    [
      'no open checks beside an urgent finding',
      [verdict('a', 'confirmed'), unknown('js-heap-leak', 'readings')],
      'confirmed',
      'Confirmed: a: a is confirmed'
    ],
    [
      'what only a setting decides before what waiting decides',
      [unknown('js-heap-leak', 'readings', 30), unknown('a', 'setting', null, warning)],
      'undecided',
      'Undecided: a: a is unknown. Also open: js-heap-leak. Run it about 30 s longer.'
    ],
    [
      'of two equally severe findings the one with less time left',
      [
        verdict('js-heap-leak', 'suspected', { secondsLeft: 900 }),
        verdict('heap-limit-thrash', 'suspected', { secondsLeft: null }),
        verdict('native-memory-leak', 'suspected', { secondsLeft: 90 })
      ],
      'suspected',
      'Suspected: native-memory-leak: native-memory-leak is suspected ' +
        'Also suspected: js-heap-leak, heap-limit-thrash.'
    ],
    [
      'a suspected one',
      [native, verdict('js-heap-leak', 'suspected')],
      'suspected',
      'Suspected: js-heap-leak: js-heap-leak is suspected'
    ],
    [
      'an undecided critical check before those ruled out',
      [leak, unknown('native-memory-leak', 'readings')],
      'undecided',
      'Undecided: native-memory-leak: native-memory-leak is unknown. ' +
        'Run it longer, under its usual load.'
    ],
    [
      'the longest wait',
      [unknown('a', 'readings', 40), unknown('b', 'readings', 90), native],
      'undecided',
      'Undecided: a: a is unknown. Also open: b. Run it about 90 s longer.'
    ],
    [
      'no time if one of two checks has none',
      [unknown('a', 'readings', 40), unknown('b', 'readings'), native],
      'undecided',
      'Undecided: a: a is unknown. Also open: b. Run it longer, under its usual load.'
    ],
    [
      'no advice to wait if only another setting decides',
      [unknown('a', 'setting'), native],
      'undecided',
      'Undecided: a: a is unknown.'
    ],
    [
      'an effect whose cause no diagnosis knows, though the check is not critical',
      [verdict('a', 'unknown', { ...warning, open: { until: 'cause', waitSeconds: null } }), native],
      'undecided',
      'Undecided: a: a is unknown.'
    ],
    [
      'checks that are impossible here, by name',
      [leak, unknown('native-memory-leak', 'never')],
      'limited',
      'Nothing found in 1 check. Not checked: native-memory-leak (native-memory-leak is unknown).'
    ],
    [
      'all ruled out, with undecided warnings',
      [leak, native, verdict('b', 'unknown', warning)],
      'ok',
      'Healthy: 2 checks ruled out. Open, none of them critical: b.'
    ],
    [
      'a worker, without the checks of its main thread',
      [leak, unknown('native-memory-leak', 'main_thread')],
      'ok',
      'Nothing found in this thread: 1 check ruled out. The main thread has the other verdicts ' +
        'on the process.'
    ],
    [
      'what is to gain',
      [leak, verdict('pointers', 'confirmed', { opportunity: true, severity: 'info' })],
      'ok',
      'Healthy: 1 check ruled out. Possible saving: pointers.'
    ],
    [
      'that nothing was judged',
      [],
      'undecided',
      'Undecided: no check has an answer yet. Run it longer.'
    ],
    [
      'that no check is possible',
      [unknown('a', 'never')],
      'undecided',
      'Undecided: no check is possible in this environment.'
    ]
  ])('says %s', (_, verdicts, state, text) => {
    expect(summarize(verdicts)).toMatchObject({ state, text })
  })

  it.each([
    [0, 'Healthy: 1 check ruled out.'],
    [1, 'Healthy: 1 check ruled out for the main thread. Its worker has verdicts of its own.'],
    [3, 'Healthy: 1 check ruled out for the main thread. Its 3 workers have verdicts of their own.']
  ])('names %d workers of a healthy main thread, which are judged by themselves', (count, text) => {
    expect(summarize([verdict('a', 'ok')], { count, affected: [], undecided: [] }))
      .toMatchObject({ state: 'ok', text })
  })
  describe('of a main thread with workers', () => {
    /**
     * @param {{ main: object[], workers: Record<string, object[]> }} verdicts by thread
     * @param {number} [age] of the workers, in seconds
     */
    const headlineWith = ({ main: own, workers }, age = 40) => {
      const main = new Target({ hello: hello(), name: 'api', thread: 'main' })
      const others = Object.entries(workers).map(([thread, verdicts], i) => {
        const other = new Target({ hello: hello({ threadId: i + 1 }), name: 'api', thread })
        findCase(other).verdicts = verdicts
        other.take(frame({ uptimeSeconds: age }), 0)
        return other
      })
      main.workers = { ...main.workers, count: others.length, threads: [main, ...others] }
      findCase(main).verdicts = own
      return headlineOf(main)
    }

    it('begins with the finding of a worker if the main thread is healthy', () => {
      expect(headlineWith({
        main: [verdict('a', 'ok')],
        workers: { 'worker-7': [verdict('b', 'suspected')] }
      })).toMatchObject({
        state: 'suspected',
        severity: 'critical',
        diagnosis: null,
        text: 'Suspected in worker-7: b: b is suspected Main thread: Healthy: 1 check ruled out.'
      })
    })
    it.each([
      ['confirmed', [verdict('a', 'ok')], 'confirmed',
        'Confirmed, not urgent in worker-7: b: b is confirmed Main thread: ' +
          'Healthy: 1 check ruled out.'],
      ['suspected', [verdict('a', 'ok')], 'ok', /^Healthy: 1 check ruled out for the main thread/],
      ['confirmed', [verdict('a', 'suspected', { severity: 'info' })], 'suspected',
        /^Suspected, not urgent: a/]
    ])('with a %s finding of a worker that is not urgent: %j is %s', (found, own, state, text) => {
      expect(headlineWith({
        main: own,
        workers: { 'worker-7': [verdict('b', found, { severity: 'info' })] }
      })).toMatchObject({
        state, text: typeof text === 'string' ? text : expect.stringMatching(text)
      })
    })
    it.each([
      [29, 'ok', /^Healthy: 1 check/],
      [30, 'undecided', /^Undecided in worker-1: b: .* Main thread: Healthy: 1 check ruled out for/]
    ])('with an undecided worker of %d s is %s', (age, state, text) => {
      expect(headlineWith({
        main: [verdict('a', 'ok')],
        workers: { 'worker-0': [verdict('b', 'ok')], 'worker-1': [unknown('b', 'readings')] }
      }, age)).toMatchObject({
        state, text: expect.stringMatching(text), open: state === 'ok' ? [] : ['b']
      })
    })
    it('begins with the worst worker, and names the others', () => {
      expect(headlineWith({
        main: [unknown('a', 'readings')],
        workers: {
          'worker-1': [verdict('b', 'suspected')],
          'worker-2': [verdict('c', 'confirmed')],
          'worker-3': [verdict('d', 'ok')]
        }
      })).toMatchObject({
        state: 'confirmed',
        open: ['a'],
        text: expect.stringMatching(new RegExp('^Confirmed in worker-2: c: c is confirmed ' +
          'Findings also in worker-1\\. Main thread: Undecided: a: '))
      })
    })
    it('begins with a finding of its own', () => {
      expect(headlineWith({
        main: [verdict('a', 'suspected', { severity: 'warning' })],
        workers: { 'worker-1': [verdict('b', 'confirmed')] }
      })).toMatchObject({ diagnosis: 'a', text: 'Suspected: a: a is suspected' })
    })
    it.each([
      ['info', 'suspected'],
      ['critical', 'ok']
    ])('is healthy with a worker whose verdict is %s, %s', (severity, state) => {
      expect(headlineWith({
        main: [verdict('a', 'ok')],
        workers: { 'worker-1': [verdict('b', state, { severity })] }
      })).toMatchObject({
        state: 'ok',
        text: 'Healthy: 1 check ruled out for the main thread. Its worker has verdicts of its own.'
      })
    })
  })
  it.each([
    [
      'a suspected leak before a confirmed finding without urgency',
      [
        verdict('js-heap-leak', 'suspected'),
        verdict('container-limit-mismatch', 'confirmed', { severity: 'info' })
      ],
      'suspected',
      'Suspected: js-heap-leak: js-heap-leak is suspected Also confirmed: container-limit-mismatch.'
    ],
    [
      'a suspected cause before its confirmed symptom',
      [verdict('js-heap-leak', 'suspected'), verdict('heap-limit-thrash', 'confirmed')],
      'suspected',
      'Suspected: js-heap-leak: js-heap-leak is suspected Also confirmed: heap-limit-thrash.'
    ],
    [
      'suspected GC before the CPU limit that it uses up',
      [
        verdict('semi-space-starvation', 'suspected', warning),
        verdict('cpu-throttling', 'confirmed', warning)
      ],
      'suspected',
      'Suspected: semi-space-starvation: semi-space-starvation is suspected Also confirmed: ' +
        'cpu-throttling.'
    ],
    [
      'a suspected symptom that is more severe than its cause',
      [verdict('js-heap-leak', 'suspected'), verdict('resource-leak', 'suspected', warning)],
      'suspected',
      'Suspected: js-heap-leak: js-heap-leak is suspected Also suspected: resource-leak.'
    ],
    ...[[128 * 1024, 'resource-leak'], [128 * 1024 + 1, 'js-heap-leak']].map(([bytes, first]) => {
      const other = first === 'js-heap-leak' ? 'resource-leak' : 'js-heap-leak'
      const heap = [{ signal: 'liveHeapGrowthBytesPerSecond', value: 5 * Number(bytes) }]
      const sockets = [{ signal: 'socketsPerSecond', value: 5 }]
      return /** @type {[string, ReturnType<typeof verdict>[], string, string]} */ ([
        `the ${first} if each handle holds ${bytes} bytes of the growing heap`,
        [
          verdict('js-heap-leak', 'suspected', { evidence: heap }),
          verdict('resource-leak', 'suspected', { ...warning, evidence: sockets })
        ],
        'suspected',
        `Suspected: ${first}: ${first} is suspected Also suspected: ${other}.`
      ])
    }),
    [
      'a confirmed finding before a suspicion that does not explain it',
      [
        verdict('js-heap-leak', 'suspected'),
        verdict('semi-space-starvation', 'confirmed', warning)
      ],
      'confirmed',
      'Confirmed: semi-space-starvation: semi-space-starvation is confirmed Also suspected: ' +
        'js-heap-leak.'
    ],
    [
      'the more severe of two',
      [verdict('a', 'confirmed', warning), verdict('b', 'confirmed')],
      'confirmed',
      'Confirmed: b: b is confirmed Also confirmed: a.'
    ]
  ])('leads with %s', (_, verdicts, state, text) => {
    expect(summarize(verdicts)).toMatchObject({
      state,
      text,
      confirmed: verdicts.filter(({ state }) => state === 'confirmed').length
    })
  })

  it('contains the finding, the wait and the undecided checks', () => {
    expect(summarize([verdict('a', 'suspected', warning), unknown('b', 'readings', 9)])).toEqual({
      state: 'suspected',
      diagnosis: 'a',
      severity: 'warning',
      text: 'Suspected: a: a is suspected',
      waitSeconds: null,
      open: ['b'],
      notLookedAt: [],
      confirmed: 0
    })
    expect(summarize([unknown('b', 'readings', 9), unknown('c', 'never'), leak])).toMatchObject({
      waitSeconds: 9, open: ['b'], notLookedAt: [{ diagnosis: 'c', text: 'c is unknown' }]
    })
  })

  const site = {
    function: 'f',
    file: 'a.js',
    line: 3,
    value: 1,
    share: 0.9,
    text: 'f (a.js:3): 90 %'
  }
  const suspects = /** @type {import('../../engine/verdicts/case').AttachedSuspects} */ (
    /** @type {unknown} */ ({
      captureId: '1',
      kind: 'heap_profile',
      atUnixMs: 0,
      suspects: { of: 'grown bytes', total: 1, sites: [site] }
    })
  )
  it('names the lines that a capture of a worker found', () => {
    const worker = new Target({ hello: hello({ threadId: 1 }), name: 'api', thread: 'worker-1' })
    findCase(worker).verdicts = [verdict('b', 'suspected')]
    findCase(worker).suspects.set('b', suspects)
    const main = new Target({ hello: hello(), name: 'api', thread: 'main' })
    main.workers = { ...main.workers, count: 1, threads: [main, worker] }
    findCase(main).verdicts = [verdict('a', 'ok')]
    expect(headlineOf(main).text).toBe(
      'Suspected in worker-1: b: b is suspected Suspects: f (a.js:3): 90 %. ' +
      'Main thread: Healthy: 1 check ruled out.'
    )
  })
  it('names the lines that a capture found', () => {
    const text = 'Confirmed: a: a is confirmed Suspects: f (a.js:3): 90 %.'
    expect(summarize([verdict('a', 'confirmed', { suspects })]).text).toBe(text)
    const holders = /** @type {import('../../engine/verdicts/holders').Holders} */ (
      /** @type {unknown} */ ({ piles: [{ text: '9 Session objects, held by Map `s`' }] })
    )
    expect(summarize([verdict('a', 'confirmed', { suspects, holders })]).text).toBe(
      `${text} Holder: 9 Session objects, held by Map \`s\`.`
    )
  })
})

describe('an undecided check', () => {
  /**
   * @param {number} seconds observed seconds
   * @param {object} [of]
   */
  const watched = (seconds, { threadId = 0, values = {} } = {}) => {
    const target = new Target({
      hello: hello({ threadId }),
      name: 'api',
      thread: threadId ? 'worker-1' : 'main'
    })
    for (let t = 1; t <= seconds; t++) {
      target.take(
        { ...frame({ sequence: t, uptimeSeconds: t }), values: { heapUsedBytes: 1, ...values } },
        0
      )
    }
    return target
  }
  const openOf = (target, id) => {
    const diagnosis = defined(diagnoses.find(diagnosis => diagnosis.id === id))
    return (
      judge(diagnosis, signalsOf(target.window()), target.hello).judgement.openUntil ?? 'readings'
    )
  }

  it.each([
    ['waits for a field that comes within two minutes', 120, 'native-memory-leak', {}, 'readings'],
    ['is given up if the field is missing after that time', 121, 'native-memory-leak', {}, 'never'],
    [
      'waits for a major GC without a time limit',
      600,
      'heap-limit-thrash',
      { heapSizeLimitBytes: 2 ** 28, gc: [[2, 0, 1, 0.001, 0.001, [1]]] },
      'readings'
    ]
  ])('%s', (_, seconds, id, values, until) => {
    expect(openOf(watched(seconds, { values }), id)).toBe(until)
  })
  it.each(['native-memory-leak', 'oversized-heap'])(
    'of a worker is left to the main thread: %s',
    id => {
      expect(openOf(watched(300, { threadId: 1 }), id)).toBe('main_thread')
    }
  )
  it('that failed has no expected time', () => {
    const broken = { ...diagnoses[0], requires: [], judge () { throw new Error('boom') } }
    const target = watched(5)
    evaluate(target, { diagnoses: [(broken)] })
    expect(findCase(target).verdicts[0].open).toEqual({ until: 'never', waitSeconds: null })
  })
  it('has an expected time if major GCs are regular, and no time if they become rarer', () => {
    /** @param {(t: number) => boolean} isMajor */
    const waits = isMajor => {
      const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
      const seen = []
      let majors = 0
      for (let t = 1; t <= 60; t++) {
        if (isMajor(t)) majors++
        const live = majors > 0 ? { liveHeapBytes: 2 ** 24 + majors, liveHeapMajors: majors } : {}
        target.take(
          {
            ...frame({ sequence: t, uptimeSeconds: t }),
            values: { heapSizeLimitBytes: 2 ** 28, rssBytes: 2 ** 26, ...live }
          },
          0
        )
        evaluate(target)
        const { state, open } =
          findCase(target).verdicts.find(({ diagnosis }) => diagnosis === 'js-heap-leak') ?? {}
        seen.push({ t, state, waitSeconds: open?.waitSeconds ?? null })
      }
      return seen
    }
    const even = waits(t => t % 5 === 0)
    const decided = even.find(({ state }) => state === 'ok')?.t
    const told = even.filter(({ waitSeconds }) => waitSeconds !== null)
    expect(told.length).toBeGreaterThan(2)
    for (const { t, waitSeconds } of told) {
      expect(Math.abs(t + defined(waitSeconds) - defined(decided))).toBeLessThan(6)
    }
    expect(
      waits(t => [2, 5, 10, 20, 40].includes(t)).filter(({ waitSeconds }) => waitSeconds !== null)
    ).toEqual([])
  })
})

describe('the headline of recordings', () => {
  const summaries = async name => {
    const { targets } = await replayFile(path.join(__dirname, `../recordings/${name}.ndjson.gz`), {})
    return Object.fromEntries(targets.map(target =>
      [target.thread, summarize(attachedVerdicts(target))]))
  }
  it('is ok for a healthy app if and only if every critical check is', async () => {
    expect((await summaries('24-healthy-cache-fill-broken')).main).toMatchObject({
      state: 'ok',
      open: []
    })
    expect((await summaries('20-healthy-large-limit-broken')).main).toMatchObject({
      state: 'undecided',
      open: ['js-heap-leak']
    })
  })
  it('confirms a worker, without calling its undecided main thread healthy', async () => {
    const { main, 'worker-1': worker } = await summaries('24-heap-limit-thrash-worker-broken')
    expect([main.state, worker.state, worker.diagnosis]).toEqual([
      'undecided',
      'confirmed',
      'heap-limit-thrash'
    ])
  })
})

it.each([
  ['ok', '\u001b[32m'],
  ['undecided', '\u001b[33m'],
  ['limited', '\u001b[1m'],
  ['confirmed', '\u001b[31m']
])('makes a report green only if it is ok: %s', (state, colour) => {
  const headline = {
    state,
    diagnosis: null,
    severity: null,
    text: 'THE HEADLINE',
    waitSeconds: null,
    open: [],
    notLookedAt: []
  }
  const lines = renderReport(
    /** @type {any} */ ({
      command: ['node'],
      durationSeconds: 1,
      exit: { code: 0, signal: null },
      deaths: [],
      targets: [
        {
          target: 'a',
          thread: 'main',
          pid: 1,
          node: '20',
          memory: null,
          headline,
          primary: null,
          verdicts: []
        }
      ]
    })
  )
  expect(terminalText(lines, { colour: true })).toContain(`${colour}  THE HEADLINE`)
})

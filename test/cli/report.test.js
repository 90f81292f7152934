'use strict'

const { renderReport } = require('../../cli/watch/report')

/**
 * @param {string} state
 * @param {string} diagnosis
 */
const verdict = (state, diagnosis) => ({
  diagnosis, state, summary: `why of ${diagnosis}`, title: `title of ${diagnosis}`,
  severity: 'warning', confirmedAfterSeconds: 5, secondsLeft: 600, evidence: [], fix: [],
  suspects: null, knownBugs: []
})

/**
 * Lines of the report about one target.
 * @param {{ target?: object, options?: Parameters<typeof renderReport>[1], deaths?: object[],
 *   exit?: object, source?: object }} [given] what differs from a run that ended by itself
 */
const linesOf = ({ target, options, ...given } = {}) => renderReport(/** @type {any} */ ({
  command: ['node', 'app.js'],
  durationSeconds: 60,
  exit: { code: 0, signal: null },
  deaths: [],
  targets: [{
    target: 'app',
    thread: 'main',
    pid: 1,
    node: '20',
    memory: null,
    headline: { state: 'confirmed', diagnosis: 'js-heap-leak', text: 'THE HEADLINE' },
    verdicts: [],
    ...target
  }],
  ...given
}), options).map(line => (typeof line === 'string' ? line : line.text))

/**
 * @param {object[]} verdicts
 * @param {Parameters<typeof renderReport>[1]} [options]
 * @param {object} [source]
 */
const render = (verdicts, options, source) =>
  linesOf({ target: { verdicts }, options, source })

const MIXED = [
  verdict('ok', 'context-leak'), verdict('confirmed', 'js-heap-leak'),
  verdict('unknown', 'resource-leak'), verdict('ok', 'oversized-heap')
]

it.each([
  ['main', 'heap_oom', false, 'Undecided: it ended before js-heap-leak could be decided.'],
  ['worker-1', 'heap_oom', false, 'Undecided: js-heap-leak. Run it longer.'],
  ['main', 'clean', false, 'Undecided: js-heap-leak. Run it longer.'],
  // A batch program ended by itself.
  ['main', 'clean', true, 'Undecided: it ended before js-heap-leak could be decided.']
])('a longer run is advised only if possible: %s ended, %s, %j', (thread, reason, isOver, text) => {
  const lines = linesOf({
    exit: { code: null, signal: 'SIGABRT' },
    deaths: [{ target: 'app', thread, pid: 1, reason, text: 'HOW IT ENDED' }],
    target: {
      headline: {
        state: 'undecided',
        diagnosis: null,
        open: ['js-heap-leak'],
        text: 'Undecided: js-heap-leak. Run it longer.'
      }
    },
    options: { isOver }
  })
  expect(lines).toContain(`  ${text}`)
})

it.each([
  ['oom_kill', 'No memory problem explains its end: 2 checks had found nothing until the last ' +
    'frame before it.'],
  ['clean', 'Healthy: 2 checks ruled out.']
])('calls only a process healthy that was not killed: ended by %s', (reason, text) => {
  const lines = linesOf({
    exit: { code: null, signal: 'SIGKILL' },
    deaths: [{ target: 'app', thread: 'main', pid: 1, reason, text: 'HOW IT ENDED' }],
    target: {
      headline: { state: 'ok', diagnosis: null, open: [], text: 'Healthy: 2 checks ruled out.' },
      verdicts: [verdict('ok', 'context-leak'), verdict('ok', 'js-heap-leak')]
    }
  })
  expect(lines).toContain(`  ${text}`)
})

it('says of an ended process when it ended, and that times to a limit are past', () => {
  const ended = [{ pid: 1, thread: 'main', afterSeconds: 5400 }]
  expect(render(MIXED, { ended }).join('\n')).toContain(
    '  It ended after 90 min. The times to a limit below were predicted before the end.\n  THE HEADLINE')
  expect(render(MIXED, { ended: [{ ...ended[0], pid: 2 }] }).join('\n')).not.toContain('It ended')
})

it('says of a program that ended by itself that times to a limit are past', () => {
  const isOver = { isOver: true }
  expect(render(MIXED, isOver).join('\n')).toContain('  The program ended by itself. The times to ' +
    'a limit below were predicted before the end.\n  THE HEADLINE')
  const timeless = { ...verdict('confirmed', 'js-heap-leak'), secondsLeft: null }
  expect(render([timeless], isOver).join('\n')).not.toContain('by itself')
  expect(render([verdict('ok', 'context-leak')], isOver).join('\n')).not.toContain('by itself')
  expect(render(MIXED).join('\n')).not.toContain('by itself')
})

it('counts the checks that found nothing', () => {
  const lines = render(MIXED)
  expect(lines).toContain('  2 ruled out, 1 undecided (-v lists them)')
  expect(lines.join('\n')).not.toMatch(/why of (context-leak|resource-leak|oversized-heap)/)
})

it('separates sections by one empty line', () => {
  const found = { ...verdict('confirmed', 'js-heap-leak'), runbook: 'MemwatchJsHeapLeak' }
  const text = render([found, verdict('ok', 'context-leak')]).join('\n')
  expect(text).toMatch(/\/alerts\/runbooks\/MemwatchJsHeapLeak\.md\n\n {2}1 ruled out/)
  expect(text).not.toMatch(/\n\n\n/)
})

it('omits the line of undecided checks if there are none', () => {
  expect(render([verdict('ok', 'context-leak')])).toContain('  1 ruled out (-v lists them)')
})

it('lists checks with -v, undecided ones last', () => {
  const lines = render(MIXED, { verbose: true })
  expect(lines.slice(-3)).toEqual([
    '  ruled out  context-leak: why of context-leak',
    '  ruled out  oversized-heap: why of oversized-heap',
    '  undecided  resource-leak: why of resource-leak'
  ])
  expect(lines.join('\n')).not.toContain('-v lists them')
})

it.each([false, true])('omits checks that its source cannot decide, verbose: %s', verbose => {
  const source = {
    title: 'a log',
    notes: [],
    limited: [],
    lacks: 'RSS',
    cannotTell: [{ diagnosis: 'resource-leak' }]
  }
  const lines = render(MIXED, { verbose }, source)
  expect(lines.join('\n')).not.toMatch(/undecided/)
})

describe('without -v', () => {
  const bug = (/** @type {string} */ id, /** @type {boolean} */ likely) =>
    ({ id, likely, text: `TEXT OF ${id}`, workaround: null, thread: 'https://example.org' })
  const found = {
    ...verdict('confirmed', 'js-heap-leak'),
    evidence: ['first', 'second', 'third', 'fourth'].map(text => ({ text })),
    knownBugs: [bug('a', false), bug('b', true), bug('c', false)]
  }

  it('shows three lines of evidence, and describes likely bugs only', () => {
    const lines = render([found])
    expect(lines).toContain('  Evidence (3 of 4, -v lists them)')
    expect(lines).not.toContain('    - fourth')
    expect(lines).toContain('  TEXT OF b https://example.org')
    expect(lines.join('\n'))
      .toContain('  2 other known bugs of this version of Node.js or of a package')
  })

  it('-v shows all of them', () => {
    const lines = render([found], { verbose: true })
    expect(lines).toContain('    - fourth')
    expect(lines).toContain('  TEXT OF c https://example.org')
    expect(lines.join()).not.toContain('may matter')
  })

  const fix = (/** @type {string} */ title) =>
    ({ title, change: { code: `HOW: ${title}` }, predicted: [], risk: 'none' })
  const both = [
    { ...found, fix: [fix('first'), fix('second')] },
    {
      ...verdict('suspected', 'event-loop-blocked'),
      evidence: [{ text: 'of the other' }],
      fix: [fix('another'), fix('one more')],
      suspects: { kind: 'cpu_profile', suspects: { sites: [{ text: 'sum app.js:3 – 90 %' }] } }
    }
  ]

  it('names other fixes; for a second finding it prints summary, place and fix', () => {
    const lines = render(both)
    expect(lines).toContain('      HOW: first')
    expect(lines).toContain('  Or: second (-v shows it)')
    const second = lines.findIndex(line => line.startsWith('  SUSPECTED'))
    expect(lines.slice(second, second + 4)).toEqual([
      '  SUSPECTED after 5 s: title of event-loop-blocked (event-loop-blocked, warning)',
      '  why of event-loop-blocked',
      '  First suspect, by a CPU profile: sum app.js:3 – 90 %',
      '  Fix: another (-v shows it)'
    ])
    expect(lines.join('\n')).not.toMatch(/HOW: (second|another)|of the other|one more/)
  })

  it('-v shows all fixes of all findings', () => {
    const text = render(both, { verbose: true }).join('\n')
    expect(text).toMatch(/HOW: first[^]*HOW: second[^]*of the other[^]*HOW: another[^]*HOW: one more/)
  })
})

describe('the length of a report', () => {
  const long = (/** @type {string} */ word) => `${word} `.repeat(140 / (word.length + 1)).trim()
  const sites = [1, 2, 3].map(line => ({
    text: `(anonymous) src/cache/session-store.js:${line} – 9.6 MiB, 30 % of the new memory ` +
      'still in use'
  }))
  const parts = [50, 20, 15, 4, 4, 3, 2, 2].map((share, i) =>
    ({ title: `part ${i}`, bytes: share * 2 ** 20 }))
  const found = {
    ...verdict('confirmed', 'js-heap-leak'),
    title: long('title'),
    impact: long('impact'),
    evidence: ['one', 'two', 'three', 'four'].map(word => ({ text: long(word) })),
    suspects: { kind: 'heap_profile', suspects: { sites } },
    knownBugs: [
      { id: 'a', likely: false, text: 'TEXT OF a', workaround: null, thread: 'https://example.org' }
    ],
    fix: [
      {
        title: 'the fix',
        change: { code: long('change').repeat(3) },
        predicted: ['RSS', 'heap'].map(name => ({ name, from: 2e8, to: 1e8, unit: 'bytes' })),
        risk: long('risk')
      },
      { title: 'another fix', change: {}, predicted: [], risk: 'none' }
    ],
    runbook: 'MemwatchJsHeapLeak'
  }
  const others = [
    {
      ...verdict('suspected', 'event-loop-blocked'),
      fix: [{ title: 'a third fix', change: {}, predicted: [], risk: 'none' }]
    },
    ...['context-leak', 'oversized-heap'].map(id => verdict('ok', id))
  ]
  /**
   * @param {object[]} verdicts
   * @param {string} text headline
   * @param {Parameters<typeof renderReport>[1]} options
   */
  const reportOf = (verdicts, text, options) => renderReport(/** @type {any} */ ({
    command: ['node', 'app.js'],
    durationSeconds: 60,
    exit: { code: 0, signal: null },
    deaths: [],
    targets: [{
      target: 'app',
      thread: 'main',
      pid: 1,
      node: '20',
      memory: { rssBytes: 100 * 2 ** 20, parts, unknown: long('unknown') },
      headline: { state: 'confirmed', diagnosis: 'js-heap-leak', text },
      verdicts
    }]
  }), options).map(line => (typeof line === 'string' ? line : line.text))
  const headline = `Confirmed: ${long('summary')} Suspects: ${sites.map(({ text }) => text).join('; ')}.`

  it.each([80, 100])('is at most 38 lines with findings, and keeps what to do: width %d', width => {
    const lines = reportOf([found, ...others], headline, { width })
    expect(lines.length).toBeLessThanOrEqual(38)
    const words = lines.join(' ').replace(/\s+/g, ' ')
    expect(words).toContain(headline)
    expect(words).toContain(`Impact: ${found.impact}`)
    expect(words).toMatch(/Evidence \(\d of 4, -v lists them\)/)
    expect(words).toContain('Fix: the fix change')
    expect(words).toContain('Expect: RSS from 191 MiB to about 95 MiB')
    expect(words).toContain('SUSPECTED after 5 s: title of event-loop-blocked')
    expect(words).toContain('MemwatchJsHeapLeak.md')
    expect(words).toContain('-v lists them')
  })

  it.each([['confirmed', true], ['suspected', false]])(
    'keeps the fix of a further finding only if that is confirmed: %s', (state, isKept) => {
      const [other, ...rest] = others
      const lines = reportOf([found, { ...other, state }, ...rest], headline, { width: 80 })
      expect(lines.join('\n')).not.toContain('why of event-loop-blocked')
      expect(lines.join('\n').includes('Fix: a third fix (-v shows it)')).toBe(isKept)
    }
  )

  it('is unlimited with -v', () => {
    const text = reportOf([found, ...others], headline, { width: 80, verbose: true }).join('\n')
    for (const part of ['Suspects, by a', 'TEXT OF a', 'part 7', 'a third fix', 'Not known', 'four']) {
      expect(text).toContain(part)
    }
  })

  it('is at most 24 lines without a finding', () => {
    const lines = reportOf(others.slice(1), 'Healthy: 2 checks ruled out.', { width: 80 })
    expect(lines.length).toBeLessThanOrEqual(24)
    expect(lines.join('\n')).toContain('part 7')
  })

  it('shortens nothing that fits', () => {
    const short = { ...found, title: 'title', impact: 'impact', fix: [], evidence: [] }
    const text = reportOf([short, ...others], 'THE HEADLINE', { width: 100 }).join('\n')
    for (const part of ['Suspects, by a', 'part 7', 'Not known', 'why of event-loop-blocked']) {
      expect(text).toContain(part)
    }
  })
})

describe('holders of a heap snapshot', () => {
  const HELD = '9 Session objects, 2 MiB, held by Map `sessions` in src/cache.js:7'
  const holders = {
    captureId: null, file: '/srv/Heap.1.heapsnapshot', atUnixMs: 2, sinceUnixMs: null, refused: null,
    piles: [{ text: HELD, path: [] }]
  }
  const suspects = {
    kind: 'heap_profile',
    suspects: {
      sites: [{ text: 'set app.js:3 – 90 %' }],
      packages: [{ package: 'tiny-lru', share: 0.8 }, { package: 'shop', share: 0.2 }]
    }
  }
  /** @param {{ verdictHolders: object | null, deathHolders: object }} of */
  const report = ({ verdictHolders, deathHolders }) => {
    const found = { ...verdict('confirmed', 'js-heap-leak'), suspects, holders: verdictHolders }
    const target = {
      target: 'app', thread: 'main', pid: 1, node: '20', memory: null,
      headline: { state: 'confirmed', diagnosis: 'js-heap-leak', text: 'THE HEADLINE' },
      verdicts: [found]
    }
    return renderReport(/** @type {any} */ ({
      command: ['node', 'app.js'],
      durationSeconds: 5,
      exit: { code: null, signal: 'SIGABRT' },
      deaths: [{
        target: 'app', thread: 'main', pid: 1, reason: 'heap_oom', text: 'HOW IT ENDED',
        holders: deathHolders
      }],
      targets: [target]
    })).map(line => (typeof line === 'string' ? line : line.text))
  }

  it('are printed once, in the verdict', () => {
    const lines = report({ verdictHolders: holders, deathHolders: holders })
    expect(lines.filter(line => line.includes(HELD))).toEqual([`    - ${HELD}`])
    expect(lines).toContain('  Held, by a heap snapshot that V8 wrote: /srv/Heap.1.heapsnapshot')
    expect(lines).toContain('    By package: tiny-lru 80 %, shop 20 %')
  })

  it('are printed with the death if no verdict has them', () => {
    const lines = report({ verdictHolders: null, deathHolders: holders })
    expect(lines).toContain(`  - ${HELD}`)
    expect(lines.indexOf(`  - ${HELD}`)).toBeLessThan(lines.indexOf('  THE HEADLINE'))
  })

  it('include the reason for a missing analysis, and the time of an earlier snapshot', () => {
    const refused = { ...holders, piles: [], refused: 'too large: 2 GiB predicted', sinceUnixMs: 0 }
    const lines = report({ verdictHolders: null, deathHolders: refused })
    expect(lines.join(' ')).toContain('only objects newer than 1970-01-01T00:00:00Z')
    expect(lines).toContain('  Not analysed: too large: 2 GiB predicted.')
  })
})

describe('many short processes, as those of a test runner', () => {
  const SHORT = 'too short for most checks'
  const EIGHT = '8 processes lived less than 10 s, too short for most checks, and had no finding: ' +
    '4 killed by a signal, 3 exited normally, 1 ended by an unknown signal (-v lists them).'
  const reasons = [
    'killed', 'clean', 'signal', 'killed', 'clean', 'killed', 'clean', 'killed'
  ]
  /**
   * @param {{ count?: number, seconds?: number, last?: object, state?: string,
   *   options?: Parameters<typeof renderReport>[1] }} [given] last: changes of the last end;
   *   state: state of the last process
   */
  const reportOf = ({ count = 8, seconds = 2, last, state = 'undecided', options } = {}) => {
    const isLast = (/** @type {number} */ i) => i === count - 1
    const ends = reasons.slice(0, count).map((reason, i) => ({
      target: 'test',
      thread: 'main',
      pid: 10 + i,
      reason,
      text: 'HOW IT ENDED',
      startedAtUnixMs: 5000,
      diedAtUnixMs: 5000 + 1000 * seconds,
      ...(isLast(i) && last)
    }))
    const targets = ends.map(({ pid }, i) => ({
      target: 'test',
      thread: 'main',
      pid,
      node: '20',
      memory: null,
      headline: { state: isLast(i) ? state : 'undecided', open: [], text: 'ITS HEADLINE' },
      verdicts: []
    }))
    return renderReport(/** @type {any} */ ({
      command: ['node', 'app.js'],
      durationSeconds: 60,
      exit: { code: 0, signal: null },
      deaths: ends,
      targets
    }), { width: 1000, ...options }).map(line => (typeof line === 'string' ? line : line.text))
  }

  it('take one line', () => {
    expect(reportOf()).toEqual([expect.stringMatching(/^memwatch: node app\.js/), '', EIGHT])
  })
  it.each(/** @type {const} */ ([
    ['with -v', { options: { verbose: true } }, 8, false],
    ['that are few', { count: 3 }, 3, false],
    ['that live for ten seconds', { seconds: 10 }, 8, false],
    ['of which one has a finding', { state: 'suspected' }, 1, true],
    ['of which one ran out of memory', { last: { reason: 'heap_oom' } }, 1, true]
  ]))('%s are reported one by one', (_, given, count, isShort) => {
    const lines = reportOf(given)
    expect(lines.filter(line => line.endsWith(', Node 20'))).toHaveLength(count)
    expect(lines.some(line => line.includes(SHORT))).toBe(isShort)
  })
})

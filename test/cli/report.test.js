'use strict'

const { renderReport } = require('../../cli/report')

/** @param {string} state @param {string} diagnosis */
const verdict = (state, diagnosis) => ({
  diagnosis, state, summary: `why of ${diagnosis}`, title: `title of ${diagnosis}`,
  severity: 'warning', confirmedAfterSeconds: 5, evidence: [], fix: [], suspects: null,
  knownBugs: []
})

/**
 * @param {ReturnType<typeof verdict>[]} verdicts
 * @param {{ verbose?: boolean }} [options]
 * @param {object} [source]
 */
const render = (verdicts, options, source) => renderReport(/** @type {any} */ ({
  command: ['node', 'app.js'],
  durationSeconds: 60,
  exit: { code: 0, signal: null },
  deaths: [],
  source,
  targets: [{
    target: 'app',
    thread: 'main',
    pid: 1,
    node: '20',
    memory: null,
    headline: { state: 'confirmed', diagnosis: 'js-heap-leak', text: 'THE HEADLINE' },
    verdicts
  }]
}), options).map(line => (typeof line === 'string' ? line : line.text))

const MIXED = [
  verdict('ok', 'context-leak'), verdict('confirmed', 'js-heap-leak'),
  verdict('unknown', 'resource-leak'), verdict('ok', 'oversized-heap')
]

it.each([
  ['main', 'heap_oom', 'Undecided: it ended before js-heap-leak could be decided.'],
  ['worker-1', 'heap_oom', 'Undecided: js-heap-leak. Run it longer.'],
  ['main', 'clean', 'Undecided: js-heap-leak. Run it longer.']
])('advises to run longer only what lives: %s ended, %s', (thread, reason, text) => {
  const lines = renderReport(/** @type {any} */ ({
    command: ['node', 'app.js'],
    durationSeconds: 5,
    exit: { code: null, signal: 'SIGABRT' },
    deaths: [{ target: 'app', thread, pid: 1, reason, text: 'HOW IT ENDED' }],
    targets: [{
      target: 'app',
      thread: 'main',
      pid: 1,
      node: '20',
      memory: null,
      headline: {
        state: 'undecided',
        diagnosis: null,
        open: ['js-heap-leak'],
        text: 'Undecided: js-heap-leak. Run it longer.'
      },
      verdicts: []
    }]
  })).map(line => (typeof line === 'string' ? line : line.text))
  expect(lines).toContain(`  ${text}`)
})

it('counts the checks that found nothing', () => {
  const lines = render(MIXED)
  expect(lines).toContain('  2 ruled out, 1 undecided (-v lists them)')
  expect(lines.join('\n')).not.toMatch(/why of (context-leak|resource-leak|oversized-heap)/)
})

it('parts its sections by one empty line', () => {
  const found = { ...verdict('confirmed', 'js-heap-leak'), runbook: 'MemwatchJsHeapLeak' }
  const text = render([found, verdict('ok', 'context-leak')]).join('\n')
  expect(text).toMatch(/\/alerts\/runbooks\/MemwatchJsHeapLeak\.md\n\n {2}1 ruled out/)
  expect(text).not.toMatch(/\n\n\n/)
})

it('names no undecided checks where there are none', () => {
  expect(render([verdict('ok', 'context-leak')])).toContain('  1 ruled out (-v lists them)')
})

it('lists them with -v, what is undecided last', () => {
  const lines = render(MIXED, { verbose: true })
  expect(lines.slice(-3)).toEqual([
    '  ruled out  context-leak: why of context-leak',
    '  ruled out  oversized-heap: why of oversized-heap',
    '  undecided  resource-leak: why of resource-leak'
  ])
  expect(lines.join('\n')).not.toContain('-v lists them')
})

it.each([false, true])('leaves out what its source cannot tell, verbose: %s', verbose => {
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

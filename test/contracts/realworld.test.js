'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { allRuns } = require('../../bench/realworld/cases')
const { realworldPage } = require('../../bench/realworld/page')
const { score } = require('../../bench/realworld/score')
const { diagnoses } = require('../../engine/diagnoses')
/** @type {import('../../bench/realworld/score').Row[]} */
const rows = /** @type {any[]} */ (require('../../bench/realworld/results.json'))

const PAGE = path.join(__dirname, '../../docs/realworld.md')
const runs = allRuns()

describe.each(runs)('$case $form', ({ form, of, packages, node, expect: expected, limitMib }) => {
  it('is reproducible: exact versions, a limit, a load', () => {
    for (const version of [...Object.values(packages), node]) {
      expect(version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
    }
    expect(limitMib === null || limitMib >= 512).toBe(true)
    expect(of.title).not.toBe('')
    expect(of.load).not.toBe('')
  })

  it('names a public thread and existing diagnoses, unless it is healthy', () => {
    if (form === 'healthy') return expect(expected).toEqual([])
    expect('source' in of && of.source).toMatch(/^https:\/\/github\.com\//)
    expect(expected.length).toBeGreaterThan(0)
    const known = diagnoses.map(({ id }) => id)
    expect(expected.filter(id => !known.includes(id))).toEqual([])
  })
})

it('each leak has a leaky and a fixed form, which differ', () => {
  for (const leaky of runs.filter(({ form }) => form === 'leaky')) {
    const fixed = runs.find(run => run.case === leaky.case && run.form === 'fixed')
    expect(fixed?.label).not.toBe(leaky.label)
  }
})

it('each case has at most one result of each form', () => {
  const keys = rows.map(row => `${row.case} ${row.form}`)
  expect(keys.filter((key, i) => keys.indexOf(key) !== i)).toEqual([])
  const known = runs.map(run => `${run.case} ${run.form}`)
  expect(keys.filter(key => !known.includes(key))).toEqual([])
})

it('docs/realworld.md is generated from the results', () => {
  expect(fs.readFileSync(PAGE, 'utf8')).toBe(realworldPage(runs, rows))
})

describe('a score', () => {
  const suspects = share => ({
    suspects: {
      sites: [{ function: 'keep', file: 'app.js', line: 3, share, text: 'keep app.js:3' }]
    }
  })
  const headline = (state, diagnosis) => ({ state, diagnosis, severity: 'critical', text: '' })
  /**
   * @param {{ state?: string, diagnosis?: string | null, share?: number, changes?: object[] }} run
   * @returns {any} fields that the test reads
   */
  const watched = ({
    state = 'suspected', diagnosis = 'js-heap-leak', share = 0.5, changes = []
  }) => ({
    report: {
      durationSeconds: 60,
      exit: { code: 0, signal: null },
      deaths: [],
      targets: [{
        thread: 'main',
        headline: headline(state, diagnosis),
        verdicts: [{ diagnosis, suspects: suspects(share) }]
      }]
    },
    changes: changes.map(change => ({ opportunity: false, ...change }))
  })
  /** @type {any} fields that the test reads */
  const leaky = {
    form: 'leaky', file: runs[0].file, expect: ['js-heap-leak'], culprit: /keep/
  }

  it('is right if the headline names the expected diagnosis', () => {
    expect(score(leaky, watched({})).right).toBe(true)
    expect(score(leaky, watched({ diagnosis: 'oversized-heap' })).right).toBe(false)
    expect(score(leaky, watched({ diagnosis: null, state: 'ok' })).right).toBe(false)
  })

  it('is wrong for a fixed version once anything but an opportunity was confirmed', () => {
    const confirmed = { seconds: 9, diagnosis: 'oversized-heap', state: 'confirmed' }
    const fixed = { ...leaky, form: 'fixed' }
    expect(score(fixed, watched({ changes: [confirmed] })).right).toBe(false)
    expect(score(fixed, watched({ changes: [{ ...confirmed, opportunity: true }] })).right)
      .toBe(true)
    expect(score(fixed, watched({ changes: [{ ...confirmed, state: 'suspected' }] })).right)
      .toBe(true)
  })

  it('contains the seconds until the first expected finding', () => {
    const changes = [
      { seconds: 5, diagnosis: 'oversized-heap', state: 'suspected' },
      { seconds: 20, diagnosis: 'js-heap-leak', state: 'suspected' },
      { seconds: 40, diagnosis: 'js-heap-leak', state: 'confirmed' }
    ]
    expect(score(leaky, watched({ changes })))
      .toMatchObject({ suspectedSeconds: 20, confirmedSeconds: 40 })
  })

  it.each([
    [/keep/, 0.05, 'right'],
    [/keep/, 0.04, 'none'],
    [/other/, 0.05, 'wrong'],
    [null, 0.5, null]
  ])('searches %s in the suspect of a headline, share %d: %s', (culprit, share, found) => {
    expect(score({ ...leaky, culprit }, watched({ share })).suspect).toBe(found)
  })
})

'use strict'

const { knownBugs, reproduced } = require('../../engine/known-bugs')
const { findKnownBugs, isIn, noteKnownBugs } = require('../../engine/known-bugs/match')
const { audit } = require('../../engine/known-bugs/audit')
const { diagnoses } = require('../../engine/diagnoses')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { findCase } = require('../../engine/verdicts/case')
const { summarize } = require('../../engine/verdicts/headline')
const { Target } = require('../../engine/history/target')
const { renderReport } = require('../../cli/watch/report')
const { terminalText } = require('../../cli/text/terminal')
const { markdown } = require('../../engine/text/suspect-text')
const { allRuns } = require('../../bench/realworld/cases')
const { hello } = require('../support/frames')
const { defined } = require('../support/defined')

/** @param {string} id */
const bugOf = id => defined(knownBugs.find(bug => bug.id === id))
/** @param {Record<string, string[]>} packages */
const versions = (packages = {}, node = '24.21.0') =>
  ({ node, packages: new Map(Object.entries(packages)) })
/** @param {string[]} through */
const suspects = (...through) => ({ sites: /** @type {any[]} */ ([{ through }]) })

describe.each(knownBugs.map(bug => [bug.id, bug]))('the known bug %s', (id, bug) => {
  it('has existing diagnoses, a public thread and short texts', () => {
    const ids = diagnoses.map(diagnosis => diagnosis.id)
    expect(bug.diagnoses.length).toBeGreaterThan(0)
    expect(bug.diagnoses.filter(diagnosis => !ids.includes(diagnosis))).toEqual([])
    expect(bug.thread).toMatch(/^https:\/\/github\.com\//)
    expect(bug.suspects.length).toBeGreaterThan(0)
    for (const text of [bug.title, bug.when, bug.workaround ?? '']) {
      expect(text).toMatch(/^[^.]?.*[^.]?$/)
      expect(text.length).toBeLessThan(100)
    }
  })

  it('has a remedy: a fixed version outside its range, or a workaround', () => {
    expect(bug.fixed.length > 0 || bug.workaround !== null).toBe(true)
    expect(bug.fixed.filter(version => isIn(version, bug.affected))).toEqual([])
  })

  it('has a case: leaky with the bug, fixed with another version or use', () => {
    const [leaky, fixed] = ['leaky', 'fixed'].map(form =>
      defined(allRuns().find(run => run.case === id && run.form === form)))
    const versionOf = (/** @type {typeof leaky} */ { node, packages }) =>
      bug.package === 'node' ? node : packages[bug.package]
    expect(isIn(versionOf(leaky), bug.affected)).toBe(true)
    const isOther = versionOf(fixed) === undefined ||
      !isIn(versionOf(fixed), bug.affected)
    expect(isOther || fixed.label !== leaky.label).toBe(true)
    expect(leaky.expect.filter(diagnosis => !bug.diagnoses.includes(diagnosis))).toEqual([])
    expect(leaky.of.title).toBe(bug.title)
  })
})

it('each known bug has one name, and each result one bug', () => {
  const ids = knownBugs.map(({ id }) => id)
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([])
  expect(Object.keys(reproduced).filter(id => !ids.includes(id))).toEqual([])
  expect(Object.keys(reproduced).length).toBeGreaterThanOrEqual(25)
})

describe('known bugs of versions', () => {
  it('are those whose range contains the version, once for each installed version', () => {
    const found = findKnownBugs(versions({ debug: ['4.2.0', '4.3.0', '3.1.0'], zod: ['4.1.8'] }))
    const named = found.filter(({ bug }) => bug.package !== 'node')
    expect(named.map(({ bug: { id }, version }) => [id, version]))
      .toEqual([['debug', '4.2.0'], ['debug', '3.1.0']])
  })

  it.each([
    ['24.15.0', false], ['24.16.0', true], ['24.19.0', true], ['24.20.0', false],
    ['26.5.1', true], ['26.6.0', false]
  ])('of Node.js %s: Blob.stream(): %s', (node, has) => {
    const ids = findKnownBugs(versions({}, node)).map(({ bug }) => bug.id)
    expect(ids.includes('blob-stream')).toBe(has)
  })

  it.each(['', 'x', '4.2', `4.2.0-${'1'.repeat(300)}`, '4.2.0; rm -rf /', '*'])(
    'are none for an invalid version: %s', version => {
      const found = findKnownBugs(versions({ debug: [version] }, version))
      expect(found).toEqual([])
    })

  it('start with audited bugs, with the next fixed version and the date of the last run', () => {
    const found = audit(versions({ 'express-session': ['1.18.1'], debug: ['4.2.0'] }, '26.4.0'))
    expect(found.map(({ kind }) => kind)).toEqual(found.map(({ kind }) => kind).sort())
    expect(found.find(({ id }) => id === 'blob-stream')).toMatchObject({
      version: '26.4.0', fixedIn: '26.6.0', reproducedOn: reproduced['blob-stream']?.date ?? null
    })
    expect(found.find(({ id }) => id === 'express-session'))
      .toMatchObject({ kind: 'trap', fixedIn: null })
  })
})

describe('with a verdict', () => {
  const found = findKnownBugs(versions({ debug: ['4.2.0'], axios: ['0.21.4'] }, '24.17.0'))
  const note = (diagnosis, of = suspects()) => noteKnownBugs(diagnosis, found, of)

  it('a bug is likely if a suspect is in its module, and then it is the only named bug', () => {
    const [first, ...others] = note('js-heap-leak', suspects('express', 'debug'))
    expect(others).toEqual([])
    expect(first).toMatchObject({ id: 'debug', likely: true, version: '4.2.0', fixedIn: '4.3.0' })
    expect(first.text).toBe(
      'Known: debug keeps each instance it made (debug-js/debug#678), fixed in debug 4.3.0. ' +
        'This is likely the cause: a suspect leads there.')
    expect(first.workaround).toBe('make each instance once, when its module is loaded')
  })

  it('a trap is the cause only of its own use, wherever a suspect leads', () => {
    const traps = findKnownBugs(versions({ winston: ['3.17.0'] }, '24.17.0'))
    const [{ text }] = noteKnownBugs('js-heap-leak', traps, suspects('winston'))
    expect(text).toBe('Known: a winston logger for each request, on one transport ' +
      '(winstonjs/winston#1334), by design. A suspect leads there: this is the cause if ' +
      'createLogger() is called for each request with a shared transport.')
  })

  it('a bug is only known for the version if no suspect is in its module', () => {
    const ofPackages = ['axios-cancel-token', 'debug']
    const ofNode = ['blob-stream', 'abort-signal-any-aborted']
    for (const [of, ids] of /** @type {const} */ ([
      [null, [...ofNode, ...ofPackages]],
      // Suspects elsewhere speak against all of them, unless nothing is known of their calls.
      [suspects('express'), []],
      [suspects(), [...ofNode, ...ofPackages]]
    ])) {
      const notes = noteKnownBugs('js-heap-leak', found, of)
      expect(notes.map(({ id }) => id)).toEqual(ids)
      expect(notes.filter(({ likely }) => likely)).toEqual([])
    }
    const [first] = noteKnownBugs('js-heap-leak', found, null)
    expect(first.text).toMatch(/^Also known for Node\.js 24\.17\.0: .* It applies when /)
  })

  it('the bug with more functions on the stack of a suspect is named', () => {
    const matches = findKnownBugs(versions({}, '24.15.0'))
    const ids = (...through) =>
      noteKnownBugs('js-heap-leak', matches, suspects(...through)).map(({ id }) => id)
    expect(ids('node:internal/abort_controller')).toEqual(['abort-signal-any'])
    expect(ids('node:internal/abort_controller', 'node:timers')).toEqual(['abort-signal-any-timeout'])
    const [apart, timers] = [['node:internal/abort_controller'], ['node:timers']]
      .map(through => suspects(...through).sites[0])
    expect(noteKnownBugs('js-heap-leak', matches, { sites: [apart, timers] }).map(({ id }) => id))
      .toEqual(['abort-signal-any'])
  })

  it('a bug of another diagnosis is not named', () => {
    expect(note('event-loop-blocked', suspects('debug'))).toEqual([])
  })

  it('a trap is named if a suspect is in its module, or if there is no suspect', () => {
    const matches = findKnownBugs(versions({ tiktoken: ['1.0.22'] }))
    const ids = (of, diagnosis = 'native-memory-leak') =>
      noteKnownBugs(diagnosis, matches, of).map(({ id }) => id)
    expect(ids(suspects('tiktoken'))).toEqual(['tiktoken-free'])
    expect(ids(null)).toEqual(['tiktoken-free'])
    expect(ids(suspects('express'))).toEqual([])
    // Promise.race() exists in every process.
    expect(ids(null, 'js-heap-leak')).toEqual([])
    expect(ids(suspects('race'), 'js-heap-leak')).toEqual(['promise-race'])
  })
})

describe('a target', () => {
  const target = new Target({ hello: hello({ node: '24.17.0' }), name: 'shop', thread: 'main' })
  const verdict = /** @type {any} */ ({
    diagnosis: 'js-heap-leak',
    title: 'The live heap grows',
    state: 'suspected',
    severity: 'critical',
    opportunity: false,
    confirmedAfterSeconds: null,
    open: null,
    summary: 'The live heap grows.',
    evidence: [],
    ruledOut: [],
    impact: null,
    fix: [],
    runbook: null
  })
  const site = {
    function: 'handle',
    file: 'a.js',
    line: 3,
    value: 1,
    share: 1,
    text: 'handle a.js:3',
    via: null,
    through: ['debug'],
    inlinedIn: null,
    call: null,
    instead: null
  }
  const attached = {
    captureId: '1',
    kind: 'heap_profile',
    atUnixMs: 1,
    suspects: { of: 'grown bytes', total: 1, sites: [site] }
  }
  const known = findCase(target)
  known.verdicts = [verdict, { ...verdict, diagnosis: 'resource-leak', state: 'ok' }]
  known.suspects.set('js-heap-leak', /** @type {any} */ (attached))

  it('has the known bugs of its packages once they are read, beside its findings', () => {
    expect(attachedVerdicts(target)[0].knownBugs.map(({ likely }) => likely)).not.toContain(true)
    known.packages = new Map([['debug', ['4.2.0']], ['multer', ['2.2.0']]])
    const [leak, ruledOut] = attachedVerdicts(target)
    expect(leak.knownBugs.map(({ id, likely }) => [id, likely])).toEqual([['debug', true]])
    expect(ruledOut.knownBugs).toEqual([])
  })

  it('shows them in headline, report and the Markdown of a capture', () => {
    const verdicts = attachedVerdicts(target)
    const text = 'Known: debug keeps each instance it made (debug-js/debug#678), fixed in debug 4.3.0.'
    const headline = summarize(verdicts)
    expect(headline.text).toContain(text)
    const report = renderReport(/** @type {any} */ ({
      command: ['node'],
      durationSeconds: 1,
      exit: { code: 0, signal: null },
      deaths: [],
      targets: [{ target: 'shop', thread: 'main', pid: 1, node: '24.17.0', headline, verdicts, memory: null }]
    }), { width: 2000 })
    const lines = terminalText(report, { colour: false })
    expect(lines).toContain(text)
    const { workaround, thread } = bugOf('debug')
    expect(lines).toContain(`Workaround if it is the cause: ${workaround}. ${thread}`)
    const page = markdown(/** @type {any} */ ({
      kind: 'heap_profile',
      target: 'shop',
      thread: 'main',
      pid: 1,
      node: '24.17.0',
      requestedUnixMs: 1,
      suspects: attached.suspects,
      knownBugs: verdicts[0].knownBugs
    }))
    expect(page).toContain('Known: debug keeps each instance it made (debug-js/debug#678)')
    expect(page).toContain(`<${bugOf('debug').thread}>`)
  })
})

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const { attach } = require('../../exporter/captures/attach')
const { AutomaticCaptures } = require('../../exporter/captures/automatic')
const { Captures } = require('../../exporter/captures/captures')
const { kinds } = require('../../exporter/captures/kinds')
const captureRules = require('../../exporter/captures/read-rules')
const { defaultRules } = require('../../exporter/captures/rules')
const { CaptureStore } = require('../../exporter/captures/store')
const { suspectsOf } = require('../../exporter/captures/suspects')
const { CommandError } = require('../../exporter/commands/commands')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { readConfig } = require('../../exporter/config')
const { readConfigFile } = require('../../exporter/config-file')
const { reasons } = require('../../exporter/deaths/reasons')
const { diagnoses } = require('../../engine/diagnoses')
const { Target } = require('../../engine/history/target')
const { findCase } = require('../../engine/verdicts/case')
const { frame, hello, MIB } = require('../support/frames')

/** @type {string} */
let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-rules-')) })
afterEach(() => fs.rmSync(folder, { recursive: true }))

const RULE = { name: 'mine', when: { diagnosis: 'js-heap-leak' }, what: 'heap_profile' }
const readRules = text =>
  captureRules.readRules(text, /** @type {any} */ (Object.keys(reasons)))
const read = (...rules) => readRules(JSON.stringify(rules))
const own = rules => rules.filter(rule => !defaultRules.includes(rule))

describe('the built-in rules', () => {
  it('have a row for each diagnosis, each with a name of its own', () => {
    const ofDiagnoses = defaultRules.flatMap(({ when, isNeeded, names }) =>
      'diagnosis' in when && !isNeeded && !names ? [when.diagnosis] : [])
    expect(ofDiagnoses.sort()).toEqual(diagnoses.map(({ id }) => id).sort())
    expect(new Set(defaultRules.map(({ name }) => name)).size).toBe(defaultRules.length)
  })
  it('cannot be changed, capture no heap snapshot, and have times that their kinds allow', () => {
    for (const rule of defaultRules) {
      expect([rule, rule.when].every(Object.isFrozen)).toBe(true)
      expect(rule.what).not.toBe('heap_snapshot')
      expect(rule.seconds ?? 0).toBeLessThanOrEqual(kinds[rule.what].mostSeconds)
    }
  })
})

describe('rules of an operator', () => {
  it.each([
    [{ diagnosis: 'js-heap-leak' }, { diagnosis: 'js-heap-leak', state: 'suspected' }],
    [
      { signal: 'heapRunwayBytes', below: 5e7, for: '2m' },
      { signal: 'heapRunwayBytes', below: 5e7, forSeconds: 120 }
    ],
    [
      { signal: 'gcPauseRatio', above: 0.2 }, { signal: 'gcPauseRatio', above: 0.2, forSeconds: 0 }
    ],
    [{ runwayBelow: 90 }, { runwayBelowSeconds: 90 }],
    [{ death: 'hung' }, { death: ['hung'] }],
    [{ death: ['hung', 'crash'] }, { death: ['hung', 'crash'] }]
  ])('with the condition %j come after the built-in ones', (when, expected) => {
    const rules = read({ ...RULE, when, every: '5m', seconds: 7 })
    expect(rules.slice(0, -1)).toEqual(defaultRules)
    expect(rules.at(-1)).toEqual({
      name: 'mine', when: expected, what: 'heap_profile', everySeconds: 300, seconds: 7
    })
  })
  it('replace a built-in rule with the same name, or disable it', () => {
    const [first, , third] = defaultRules
    const rules = read({ ...RULE, name: first.name }, { name: third.name, off: true })
    expect(rules[0]).toMatchObject({ name: first.name, when: { diagnosis: 'js-heap-leak' } })
    expect(rules).toHaveLength(defaultRules.length - 1)
    expect(rules.some(({ name }) => name === third.name)).toBe(false)
  })
  it.each([
    [{ ...RULE, when: { diagnosis: 'js-heap-leek' } },
      'rule mine: when: diagnosis: "js-heap-leek" is unknown; did you mean js-heap-leak?'],
    [{ ...RULE, when: { signal: 'gcPauseRatioo', above: 1 } }, 'did you mean gcPauseRatio?'],
    [{ ...RULE, when: { signal: 'gcPauseRatio' } }, 'expected above or below'],
    [{ ...RULE, when: { signal: 'gcPauseRatio', above: '1' } }, 'above: expected a number, got "1"'],
    [{ ...RULE, when: { runwayBelow: 'soon' } }, 'runwayBelow: expected a time'],
    [{ ...RULE, when: { death: 'oomkill' } }, 'did you mean oom_kill?'],
    [{ ...RULE, when: {} }, 'when: expected one of diagnosis, signal, runwayBelow, death'],
    [{ ...RULE, when: { diagnosis: 'js-heap-leak', state: 'ok' } }, 'known are suspected, confirmed'],
    [{ ...RULE, when: { diagnosis: 'js-heap-leak', runwayBelow: 5 } }, '"runwayBelow" is unknown'],
    [{ ...RULE, when: 'always' }, 'when: expected an object'],
    [{ ...RULE, what: 'heap_profil' }, 'what: "heap_profil" is unknown; did you mean heap_profile?'],
    [{ ...RULE, what: undefined }, 'what: missing is unknown'],
    [{ ...RULE, what: 'constructor' }, 'what: "constructor" is unknown'],
    [{ ...RULE, evry: '5m' }, 'did you mean every?'],
    [{ ...RULE, every: '0' }, 'every: expected a time'],
    [{ ...RULE, seconds: 301 }, 'seconds: expected a number up to 300'],
    [{ ...RULE, what: 'report', seconds: 1 }, 'seconds: expected none, because a report takes no time'],
    [{ ...RULE, name: 'Not a name' }, 'rule 1: name: expected'],
    [{ name: 'last-minit', off: true }, 'did you mean last-minute?'],
    [{ ...RULE, off: true }, 'off: expected true, and no other key than the name'],
    ['x', 'rule 1: expected an object']
  ])('such as %j are refused', (rule, message) => {
    expect(() => read(rule)).toThrow(message)
  })
  it('with equal names, and invalid tables, are refused', () => {
    expect(() => read(RULE, RULE)).toThrow('rule mine: two rules have this name')
    expect(() => readRules('[')).toThrow(SyntaxError)
    const file = path.join(folder, 'rules.json')
    fs.writeFileSync(file, '{}')
    expect(() => readRules(file)).toThrow('expected an array of at most 100 rules')
    fs.writeFileSync(file, ' '.repeat(65_537))
    expect(() => readRules(file)).toThrow('expected a file of at most 65536 bytes')
    expect(() => readRules(folder)).toThrow('expected a file')
  })
  it('come from a file, or directly from the config file', () => {
    const file = path.join(folder, 'rules.json')
    fs.writeFileSync(file, JSON.stringify([RULE]))
    expect(own(readConfig({ captureRules: file }, {}).captureRules)).toMatchObject([RULE])
    const config = path.join(folder, 'memwatch.config.json')
    for (const captureRules of [[RULE], file]) {
      fs.writeFileSync(config, JSON.stringify({ captureRules }))
      const rules = readConfig({}, {}, readConfigFile(config)).captureRules
      expect(own(rules)).toMatchObject([RULE])
    }
    expect(() => readConfig({ captureRules: '[{}]' }, {})).toThrow('--capture-rules: rule 1: name')
  })
})

describe('a rule', () => {
  /**
   * @param {readonly any[]} [rules]
   * @param {() => boolean} [isFree]
   */
  function make (rules, isFree) {
    const time = { now: 0 }
    const asked = []
    const finish = []
    const automatic = new AutomaticCaptures(/** @type {any} */ ({
      request: (target, options) => {
        asked.push({ target: target.name, ...options })
        return { finished: new Promise(resolve => finish.push(resolve)) }
      }
    }), { rules, isFree, now: () => time.now })
    return {
      automatic,
      asked,
      time,
      next: async (/** @type {string | null} */ errorCode = null) => {
        finish.shift()?.({ errorCode })
        await new Promise(resolve => setImmediate(resolve))
      }
    }
  }
  /** @param {object} [changes] of the hello */
  const targetOf = (name = 'shop', changes = {}) =>
    new Target({ hello: hello(changes), name, thread: 'main' })
  const UNIX_MS = 1_760_000_000_000
  const tick = (target, uptimeSeconds, values = {}) => {
    const atUnixMs = UNIX_MS + 1000 * uptimeSeconds
    target.take(frame({ sequence: uptimeSeconds, atUnixMs, uptimeSeconds, values }), atUnixMs)
  }
  const leak = (secondsLeft, more = {}) => /** @type {any} */ ({
    diagnosis: 'js-heap-leak',
    state: 'suspected',
    secondsLeft,
    evidence: [{ signal: 'liveHeapGrowthBytesPerSecond', value: MIB / 10 }],
    ...more
  })

  it('about the last minute acts once in this minute, before the rule of the diagnosis', async () => {
    const { automatic, asked, next } = make()
    const target = targetOf()
    findCase(target).verdicts = [leak(60)]
    automatic.seen(target)
    expect(asked).toEqual([])
    findCase(target).verdicts = [leak(null), leak(59.9)]
    automatic.changed(target, leak(59.9))
    automatic.seen(target)
    await next()
    automatic.seen(target)
    automatic.changed(target, leak(30, { state: 'confirmed' }))
    expect(asked).toEqual([{
      target: 'shop',
      kind: 'heap_profile',
      rule: 'last-minute',
      diagnosis: 'js-heap-leak',
      seconds: 12,
      intervalBytes: 131_072
    }])
  })
  it('about the last minute waits for a capture of the same process, not for others', () => {
    const { automatic, asked } = make()
    const [slow, dying, other] = [1, 2, 3].map(pid => targetOf(`app-${pid}`, { pid }))
    automatic.changed(slow, leak(null))
    automatic.changed(other, leak(null))
    findCase(dying).verdicts = [leak(20)]
    automatic.seen(dying)
    findCase(slow).verdicts = [leak(20)]
    automatic.seen(slow)
    expect(asked.map(({ target, rule }) => [target, rule])).toEqual([
      ['app-1', 'js-heap-leak'], ['app-2', 'last-minute']
    ])
  })
  it.each([[null, 30], [1000, 30], [40, 20], [10, 9]])(
    'takes at most half of the remaining time: with %j s left %d s', (secondsLeft, seconds) => {
      const { automatic, asked } = make(defaultRules.filter(({ name }) => name === 'js-heap-leak'))
      automatic.changed(targetOf(), leak(secondsLeft))
      expect(asked).toMatchObject([{ seconds }])
    }
  )
  it.each([
    ['files', 'fileDescriptorsOfFiles', [], 5], ['files', 'fileDescriptorsOfFiles', ['force_gc'], 10],
    ['sockets', 'fileDescriptorsOfSockets', [], null]
  ])('samples the calls that open files if %s pile up (%s, %j)', (_, signal, commands, seconds) => {
    const { automatic, asked } =
      make(defaultRules.filter(({ name }) => name === 'resource-leak-opens'))
    automatic.changed(targetOf('shop', { commands: ['capture', ...commands] }), leak(null, {
      diagnosis: 'resource-leak', evidence: [{ signal, value: 400 }]
    }))
    expect(asked).toEqual(seconds === null
      ? []
      : [{
          target: 'shop',
          kind: 'cpu_profile',
          rule: 'resource-leak-opens',
          diagnosis: 'resource-leak',
          names: 'opens',
          seconds,
          intervalMicroseconds: 250
        }])
  })
  it.each([
    ['in a service', [], { seconds: 5 }],
    ['for a person who waits', ['force_gc'], { seconds: 5, intervalMicroseconds: 250 }]
  ])('samples the calls of a native leak %s', (_, commands, expected) => {
    const { automatic, asked } =
      make(defaultRules.filter(({ name }) => name === 'native-memory-leak-calls'))
    automatic.changed(targetOf('shop', { commands: ['capture', ...commands] }), leak(null, {
      diagnosis: 'native-memory-leak', evidence: []
    }))
    expect(asked).toEqual([{
      target: 'shop',
      kind: 'cpu_profile',
      rule: 'native-memory-leak-calls',
      diagnosis: 'native-memory-leak',
      ...expected
    }])
  })
  it('that samples the calls that open files replaces no other CPU profile', async () => {
    const { automatic, asked, next } = make(defaultRules.filter(({ name }) =>
      ['resource-leak-opens', 'event-loop-blocked'].includes(name)))
    const target = targetOf('shop', { commands: ['capture'] })
    automatic.changed(target, leak(null, {
      diagnosis: 'resource-leak', evidence: [{ signal: 'fileDescriptorsOfFiles', value: 400 }]
    }))
    automatic.changed(target, leak(null, { diagnosis: 'event-loop-blocked', evidence: [] }))
    await next()
    expect(asked.map(({ rule }) => rule)).toEqual(['resource-leak-opens', 'event-loop-blocked'])
  })
  it('about a diagnosis waits for its state', () => {
    const { automatic, asked } = make(own(read({
      ...RULE, when: { diagnosis: 'js-heap-leak', state: 'confirmed' }, what: 'gc_trace'
    })))
    const target = targetOf()
    for (const state of ['unknown', 'ok', 'suspected']) automatic.changed(target, leak(5, { state }))
    expect(asked).toEqual([])
    automatic.changed(target, leak(5, { state: 'confirmed' }))
    expect(asked).toMatchObject([{ kind: 'gc_trace', rule: 'mine' }])
  })
  it('about a signal acts once its condition has held for the given time without a break', async () => {
    const { automatic, asked, next, time } = make(own(read({
      ...RULE, when: { signal: 'containerLimitBytes', below: 10 * MIB, for: 4 }, every: 10
    })))
    const target = targetOf()
    const give = (uptimeSeconds, mib) => {
      tick(target, uptimeSeconds, { containerLimitBytes: mib * MIB })
      automatic.seen(target)
      return asked.length
    }
    const times = [give(2, 50), give(4, 5), give(6, 50), give(8, 5), give(10, 5)]
    expect(times).toEqual([0, 0, 0, 0, 0])
    expect(give(12, 5)).toBe(1)
    expect(asked).toMatchObject([{ kind: 'heap_profile', diagnosis: undefined, seconds: 30 }])
    await next()
    time.now = 9999
    expect(give(14, 5)).toBe(1)
    time.now = 10_000
    expect(give(16, 5)).toBe(2)
  })
  it('about a death captures the next process of the name, at half of the age, once an hour', async () => {
    const { automatic, asked, time, next } = make()
    const live = seconds => {
      const target = targetOf()
      for (let second = 1; second <= seconds; second++) {
        tick(target, second)
        automatic.seen(target)
      }
      return target
    }
    const die = (target, reason) => automatic.died(/** @type {any} */ ({ reason }), target)
    die(live(40), 'error')
    expect(asked).toEqual([])
    die(live(40), 'oom_kill')
    live(19)
    expect(asked).toEqual([])
    const second = live(21)
    expect(asked).toMatchObject([{ rule: 'after-death', kind: 'heap_profile', seconds: 10 }])
    await next()
    die(second, 'oom_kill')
    live(40)
    expect(asked).toHaveLength(1)
    time.now = 3_600_000
    die(second, 'heap_oom')
    live(40)
    expect(asked).toHaveLength(2)
  })
  it('about a death does nothing after a life of more than twenty minutes', () => {
    const { automatic, asked } = make()
    const target = targetOf()
    tick(target, 1201)
    automatic.died(/** @type {any} */ ({ reason: 'oom_kill' }), target)
    const next = targetOf()
    tick(next, 1201)
    automatic.seen(next)
    expect(asked).toEqual([])
  })
  it('about a diagnosis acts after an overload of the exporter, if the diagnosis remains', () => {
    let isFree = false
    const { automatic, asked } = make(undefined, () => isFree)
    const [lasting, over] = [1, 2].map(pid => targetOf(`app-${pid}`, { pid }))
    for (const target of [lasting, over]) {
      findCase(target).verdicts = [leak(null)]
      automatic.changed(target, leak(null))
    }
    automatic.changed(over, leak(null, { state: 'ok' }))
    automatic.seen(lasting)
    expect(asked).toEqual([])
    isFree = true
    automatic.seen(over)
    automatic.seen(lasting)
    automatic.seen(lasting)
    expect(asked).toMatchObject([{ target: 'app-1', rule: 'js-heap-leak' }])
  })
  it.each([['failed', 2], ['no_answer', 2], ['snapshot_not_allowed', 1], [null, 1]])(
    'about a diagnosis is tried again a minute later after the error %s, up to %d times',
    async (errorCode, attempts) => {
      const { automatic, asked, time, next } = make()
      const target = targetOf()
      findCase(target).verdicts = [leak(null)]
      automatic.changed(target, leak(null))
      await next(errorCode)
      time.now = 59_999
      automatic.seen(target)
      expect(asked).toHaveLength(1)
      for (let minute = 1; minute < 10; minute++) {
        time.now = 60_000 * minute
        automatic.seen(target)
        await next(errorCode)
      }
      expect(asked).toHaveLength(attempts)
    }
  )
  it('about a diagnosis is tried again even if the diagnosis is confirmed meanwhile', async () => {
    const { automatic, asked, time, next } = make()
    const target = targetOf()
    automatic.changed(target, leak(null))
    await next('failed')
    const confirmed = leak(null, { state: 'confirmed' })
    findCase(target).verdicts = [confirmed]
    time.now = 10_000
    automatic.changed(target, confirmed)
    expect(asked).toHaveLength(1)
    time.now = 60_000
    automatic.seen(target)
    expect(asked).toHaveLength(2)
  })
  it('about a diagnosis is not tried again if the last minute replaced it', async () => {
    const { automatic, asked, time, next } = make()
    const target = targetOf()
    findCase(target).verdicts = [leak(null)]
    automatic.changed(target, leak(null))
    await next('failed')
    findCase(target).verdicts = [leak(50)]
    time.now = 20_000
    automatic.seen(target)
    await next()
    time.now = 60_000
    automatic.seen(target)
    expect(asked.map(({ rule }) => rule)).toEqual(['js-heap-leak', 'last-minute'])
  })
  it('is tried again after a capture of the same kind for another diagnosis', async () => {
    const { automatic, asked, time, next } = make()
    const target = targetOf()
    const handles = leak(null, { diagnosis: 'resource-leak' })
    findCase(target).verdicts = [handles, leak(null)]
    automatic.changed(target, handles)
    await next('failed')
    time.now = 59_000
    automatic.changed(target, leak(null))
    time.now = 61_000
    automatic.seen(target)
    await next()
    automatic.seen(target)
    expect(asked.map(({ rule }) => rule))
      .toEqual(['resource-leak', 'js-heap-leak', 'resource-leak'])
  })
  it('starts no waiting capture while the exporter is overloaded', async () => {
    let isFree = true
    const { automatic, asked, next } = make(undefined, () => isFree)
    const [one, two] = [1, 2].map(pid => targetOf(`app-${pid}`, { pid }))
    for (const target of [one, two]) automatic.changed(target, leak(null))
    isFree = false
    await next()
    expect(asked).toHaveLength(1)
    isFree = true
    automatic.seen(one)
    expect(asked.map(({ target }) => target)).toEqual(['app-1', 'app-2'])
  })
  it('about a blocked loop waits for a second block, as the first one is over', () => {
    const { automatic, asked } = make()
    const target = targetOf()
    const blocked = signal => leak(null, {
      diagnosis: 'event-loop-blocked', evidence: [{ signal, value: 12 }]
    })
    findCase(target).verdicts = [blocked('longestBlockSeconds')]
    automatic.changed(target, blocked('longestBlockSeconds'))
    automatic.seen(target)
    expect(asked).toEqual([])
    findCase(target).verdicts = [blocked('longBlocksSeen')]
    automatic.seen(target)
    expect(asked).toMatchObject([{ kind: 'cpu_profile', rule: 'event-loop-blocked' }])
  })
  it('is tried again if another capture of the process is running', async () => {
    const asked = []
    const automatic = new AutomaticCaptures(/** @type {any} */ ({
      request: target => {
        asked.push(target.name)
        throw new CommandError('busy', 'another capture runs')
      }
    }))
    const target = targetOf()
    findCase(target).verdicts = [leak(20)]
    for (let i = 0; i < 2; i++) {
      automatic.seen(target)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(asked).toEqual(['shop', 'shop'])
  })
})

/**
 * Text of a heap profile with one function.
 * @param {string} functionName
 * @param {number} [samples]
 */
const readingOf = (functionName, samples = 1) => JSON.stringify({
  head: {
    callFrame: { functionName: '(root)', url: '', lineNumber: -1, columnNumber: -1 },
    selfSize: 0,
    children: [{
      id: 1,
      callFrame: { functionName, url: 'file:///srv/a.js', lineNumber: 4, columnNumber: 0 },
      selfSize: 1000 * samples,
      children: []
    }]
  },
  samples: Array.from({ length: samples }, () => ({ nodeId: 1 }))
})
/**
 * @param {Captures} captures
 * @param {string} id
 * @param {string} part
 * @param {string} text
 */
const arrive = (captures, id, part, text) => {
  const socket = Object.assign(Readable.from([Buffer.from(text)]), { setTimeout: () => {} })
  captures.take({ type: 'capture', id, part }, /** @type {any} */ (socket), Buffer.alloc(0))
}

/** A profile without samples. */
const EMPTY = '{"head":{"callFrame":{},"selfSize":0,"children":[]}}'

describe('the first reading of a heap profile', () => {
  /**
   * @param {number} [seconds]
   * @param {number} [sampledSeconds] age of a profile that began before; 0 without one
   */
  async function make (seconds = 30, sampledSeconds = 0) {
    /** @type {(answer: object) => void} */
    let answer = () => {}
    const time = { nowMs: 1_760_000_000_000 }
    const captures = new Captures({
      commands: /** @type {any} */ ({
        assertTakes: () => {},
        carryOut: (_target, command) => command === 'sample_heap'
          ? Promise.resolve({ ok: true })
          : new Promise(resolve => { answer = resolve })
      }),
      store: new CaptureStore(folder, { maxBytes: 2 ** 20, keepMs: 1e9 }),
      suspectsOf,
      retainersOf: /** @type {any} */ async () => null,
      now: () => time.nowMs
    })
    const target = new Target({ hello: hello(), name: 'shop', thread: 'main' })
    if (sampledSeconds > 0) {
      await captures.sampleHeap(target, { seconds: 90, intervalBytes: 8192 })
      time.nowMs += 1000 * sampledSeconds
    }
    findCase(target).verdicts = /** @type {any} */ ([
      { diagnosis: 'js-heap-leak', state: 'suspected' }
    ])
    for (const event of ['reading', 'done']) {
      captures.on(event, capture => attach(target, capture))
    }
    const { capture, finished } =
      captures.request(target, { kind: 'heap_profile', seconds, diagnosis: 'js-heap-leak' })
    return {
      capture,
      captures,
      target,
      named: () => attachedVerdicts(target)[0].suspects?.suspects.sites
        .map(({ function: name }) => name),
      /** @param {Record<string, string>} parts */
      finish (parts) {
        const lengths = Object.entries(parts).map(([part, { length }]) => [part, length])
        answer({ parts: Object.fromEntries(lengths) })
        return finished
      }
    }
  }

  it.each([
    ['replaced by', readingOf('second', 9), ['second']],
    ['withdrawn without', EMPTY, undefined]
  ])('has suspects, which are %s those of the second', async (_, profile, expected) => {
    const { capture, captures, finish, named } = await make()
    const before = readingOf('first', 4)
    const read = once(captures, 'reading')
    arrive(captures, capture.id, 'before', before)
    await read
    expect(named()).toEqual(['first'])
    expect(capture).toMatchObject({ state: 'running', parts: [{ part: 'before' }] })
    arrive(captures, capture.id, 'profile', profile)
    await finish({ before, profile })
    expect(capture).toMatchObject({
      state: 'done', error: null, parts: [{ part: 'before' }, { part: 'profile' }]
    })
    expect(named()).toEqual(expected)
  })
  it('hides earlier suspects only until the capture ends without new ones', async () => {
    const { capture, captures, finish, named, target } = await make()
    findCase(target).suspects.set('js-heap-leak', /** @type {any} */ ({
      captureId: 'earlier', suspects: { sites: [{ function: 'earlier' }] }
    }))
    const before = readingOf('first', 4)
    const profile = EMPTY
    const read = once(captures, 'reading')
    arrive(captures, capture.id, 'before', before)
    await read
    expect(named()).toEqual(['first'])
    arrive(captures, capture.id, 'profile', profile)
    await finish({ before, profile })
    expect(named()).toEqual(['earlier'])
  })
  it('says that the profile still runs', async () => {
    const { capture, captures } = await make()
    const read = once(captures, 'reading')
    arrive(captures, capture.id, 'before', readingOf('first', 4))
    await read
    expect(capture.suspects?.sites[0].text).toMatch(/so far; the profile still runs$/)
  })
  it.each([
    ['has', 'first', 8, EMPTY, ['first']],
    ['has', 'first', 89, readingOf('second', 9), ['second']],
    ['has no', undefined, 0, EMPTY, undefined],
    ['has no', undefined, 91, EMPTY, undefined]
  ])('of a short profile %s suspects (%s) if it began %d s before', async (
    _, early, sampledSeconds, profile, expected
  ) => {
    const { capture, captures, finish, named } = await make(6, sampledSeconds)
    const before = readingOf('first', 4)
    const read = once(captures, 'reading')
    arrive(captures, capture.id, 'before', before)
    if (early) await read
    expect(named()).toEqual(early && [early])
    arrive(captures, capture.id, 'profile', profile)
    await finish({ before, profile })
    expect(named()).toEqual(expected)
  })
  it('of a profile that began before is no part of the second one', async () => {
    const { capture, captures, finish, named } = await make(6, 40)
    const before = readingOf('first', 9)
    const read = once(captures, 'reading')
    arrive(captures, capture.id, 'before', before)
    await read
    // The same objects are alive in the second reading, and none are new.
    arrive(captures, capture.id, 'profile', before)
    await finish({ before, profile: before })
    expect(named()).toEqual(['first'])
    expect(capture.suspects?.sites[0].text).toMatch(/of the new memory still in use$/)
  })
  it.each([
    ['with too few samples', 30, readingOf('first', 3)],
    ['of a short profile', 12, readingOf('first', 9)],
    ['that is no profile', 30, '{}']
  ])('%s has no suspects of its own', async (_, seconds, before) => {
    const { capture, captures, finish, named } = await make(seconds)
    let readings = 0
    captures.on('reading', () => readings++)
    arrive(captures, capture.id, 'before', before)
    const profile = readingOf('second', 9)
    arrive(captures, capture.id, 'profile', profile)
    await finish({ before, profile })
    expect([readings, named()]).toEqual([0, before === '{}' ? undefined : ['second']])
  })
})

describe('a CPU profile of a leak', () => {
  const [before, profile] = [readingOf('first', 4), readingOf('second', 9)]
  it.each([
    ['is read with the heap profile', 'inner', true, [before, profile]],
    ['has no heap profile, if that was removed', 'inner', false, null],
    ['of native calls is read alone', undefined, true, undefined],
    ['of handlers is read alone', 'handlers', true, undefined]
  ])('%s', async (_, names, isStored, expected) => {
    /** @type {any[]} */
    const heaps = []
    /** @type {(answer: object) => void} */
    let answer = () => {}
    const captures = new Captures({
      commands: /** @type {any} */ ({
        assertTakes: () => {},
        carryOut: () => new Promise(resolve => { answer = resolve })
      }),
      store: new CaptureStore(folder, { maxBytes: 2 ** 20, keepMs: 1e9 }),
      suspectsOf: (capture, read, of, sources, heap) => {
        heaps.push(heap && [heap.before, heap.after].map(profile => JSON.stringify(profile)))
        return capture.kind === 'heap_profile' ? suspectsOf(capture, read, of) : null
      },
      retainersOf: /** @type {any} */ async () => null
    })
    captures.on('done', capture => attach(target, capture))
    const target = new Target({ hello: hello(), name: 'shop', thread: 'main' })
    /**
     * @param {any} options
     * @param {Record<string, string>} parts
     */
    const make = (options, parts) => {
      const { capture, finished } = captures.request(target, options)
      for (const [part, text] of Object.entries(parts)) arrive(captures, capture.id, part, text)
      answer({
        parts: Object.fromEntries(Object.entries(parts).map(([part, { length }]) => [part, length]))
      })
      return finished.then(() => capture)
    }
    const { id } = await make({ kind: 'heap_profile', diagnosis: 'js-heap-leak' }, { before, profile })
    if (!isStored) captures.remove(id)
    await make({ kind: 'cpu_profile', diagnosis: 'js-heap-leak', names }, { profile: '{}' })
    expect(heaps.at(-1)).toEqual(expected)
  })
})

describe('a heap profile whose process dies', () => {
  const READING = readingOf('leak')
  /**
   * @param {Record<string, string>} parts that arrived before the process died
   * @param {import('../../exporter/captures/kinds').KindName} [kind]
   */
  async function dying (parts, kind = 'heap_profile') {
    const store = new CaptureStore(folder, { maxBytes: 2 ** 20, keepMs: 1e9 })
    let die = () => {}
    const captures = new Captures({
      commands: /** @type {any} */ ({
        assertTakes: () => {},
        carryOut: () => new Promise((_resolve, reject) => {
          die = () => reject(new CommandError('no_answer', 'gone'))
        })
      }),
      store,
      suspectsOf,
      retainersOf: /** @type {any} */ async () => null
    })
    const target = new Target({ hello: hello(), name: 'shop', thread: 'main' })
    const { capture } = captures.request(target, { kind })
    for (const [part, text] of Object.entries(parts)) arrive(captures, capture.id, part, text)
    // The target is still connected: nobody waits for its captures.
    await captures.idle()
    expect(capture.state).toBe('running')
    target.connected = false
    const idle = captures.idle()
    die()
    await idle
    return { capture, store }
  }

  it.each([
    ['alone', { before: READING }],
    ['beside a second one that is cut off', { before: READING, profile: READING.slice(0, 50) }]
  ])('leaves the first reading, %s', async (_, parts) => {
    const { capture, store } = await dying(parts)
    expect(capture).toMatchObject({
      state: 'done',
      error: null,
      isPartial: true,
      parts: [{ part: 'profile', bytes: READING.length }],
      suspects: { sites: [{ function: 'leak', line: 5 }] }
    })
    expect(fs.readFileSync(store.fileOf(capture.id, 'profile'), 'utf8')).toBe(READING)
    expect(fs.readdirSync(path.join(folder, capture.id)).sort()).toEqual(['capture.json', 'profile'])
    const again = new CaptureStore(folder, { maxBytes: 2 ** 20, keepMs: 1e9 })
    again.restore()
    expect(again.all).toMatchObject([{ id: capture.id, isPartial: true }])
  })
  it.each([
    ['nothing came', {}],
    ['the first reading is cut off', { before: READING.slice(0, -9) }],
    ['the first reading is no profile', { before: '{}' }]
  ])('has failed where %s', async (_, parts) => {
    const { capture, store } = await dying(parts)
    expect(capture).toMatchObject({ state: 'failed', parts: [], isPartial: false, suspects: null })
    expect([store.all, fs.existsSync(path.join(folder, capture.id))]).toEqual([[], false])
  })
})

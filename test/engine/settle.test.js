'use strict'

const { settle } = require('../../engine/verdicts/settle')
const { findCase } = require('../../engine/verdicts/case')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { primaryOf } = require('../../engine/verdicts/urgency')
const { Target } = require('../../engine/history/target')
const { hello, frame } = require('../support/frames')
const { defined } = require('../support/defined')

const judgement = state => ({ state, summary: state })
/**
 * Settles a judgement every two seconds and returns the states. c: confirmed, s: suspected, o: ok,
 * u: unknown.
 */
function settled (letters) {
  const states = { c: 'confirmed', s: 'suspected', o: 'ok', u: 'unknown' }
  let before
  return [...letters].map((letter, i) => {
    before = settle(before, judgement(states[letter]), 2 * i)
    return before.state[0]
  }).join('')
}

describe('settle', () => {
  it.each([
    ['a single window confirms nothing', 'oco', 'oss'],
    ['two windows in a row confirm', 'occc', 'oscc'],
    ['a short gap withdraws nothing', 'cc' + 'o'.repeat(10) + 'cc', 'sc' + 'c'.repeat(12)],
    [
      'missing evidence never withdraws a finding',
      'cc' + 'u'.repeat(100),
      'sc' + 'c'.repeat(100)
    ],
    ['half a minute without it withdraws it', 'cc' + 'o'.repeat(15), 'sc' + 'c'.repeat(14) + 'o'],
    ['without a finding the state follows at once', 'uosc', 'uoss'],
    ['a suspicion also stays for half a minute', 's' + 'o'.repeat(15), 's'.repeat(15) + 'o'],
    ['a repeated suspicion is one suspicion', 'soosuusoosu', 'sssssssssss']
  ])('%s', (_, given, expected) => {
    expect(settled(given)).toBe(expected)
  })
  it('confirms what was observed for twelve hours only after half an hour of agreement', () => {
    const long = { ...judgement('confirmed'), seconds: 43_200 }
    const first = settle(undefined, long, 50_000)
    expect(settle(first, long, 51_790).state).toBe('suspected')
    expect(settle(first, long, 51_800).state).toBe('confirmed')
    const open = settle(first, { ...long, state: 'suspected', agrees: true }, 51_000)
    expect(settle(settle(open, long, 51_790), long, 51_800).state).toBe('confirmed')
    const near = { ...long, secondsLeft: 600, standing: 'it grew' }
    expect(settle(settle(undefined, near, 50_000), near, 50_060).state).toBe('confirmed')
    const far = { ...near, secondsLeft: 7200 }
    expect(settle(undefined, far, 50_000).judgement)
      .toMatchObject({ summary: 'it grew.', secondsLeft: null })
    expect(settle(undefined, near, 50_000).judgement).toBe(near)
    const doubted = settle(first, { ...long, state: 'suspected' }, 51_000)
    expect(settle(settle(doubted, long, 51_790), long, 53_580).state).toBe('suspected')
    expect(settle(settle(doubted, long, 51_790), long, 53_590).state).toBe('confirmed')
  })
  it('rules out growth that was too young to judge after half of its time without growth', () => {
    const young = { ...judgement('unknown'), seconds: 600 }
    const open = settle(undefined, young, 2)
    expect(open.state).toBe('unknown')
    expect(settle(open, judgement('ok'), 301)).toBe(open)
    expect(settle(open, judgement('ok'), 302).state).toBe('ok')
    expect(settle(open, judgement('suspected'), 4).state).toBe('suspected')
  })
  it.each([[60, 30], [600, 300], [7200, 1800]])(
    'young growth of %d s opens what was ruled out after %d s',
    (seconds, after) => {
      const young = { ...judgement('unknown'), seconds }
      const closed = settle(undefined, judgement('ok'), 0)
      expect(settle(closed, young, after - 1)).toBe(closed)
      expect(settle(closed, young, after).state).toBe('unknown')
      expect(settle(closed, judgement('suspected'), 2).state).toBe('suspected')
    }
  )
  it.each([[60, 30], [7200, 3600]])(
    'growth of %d s that was refuted opens what was ruled out after %d s',
    (seconds, after) => {
      const refuted = { ...judgement('unknown'), seconds, refutes: true }
      const closed = settle(undefined, judgement('ok'), 0)
      expect(settle(closed, refuted, after - 1)).toBe(closed)
      expect(settle(closed, refuted, after).state).toBe('unknown')
    }
  )
  it.each([[60, 30], [7200, 1800]])(
    'growth that may go on for %d s is ruled out %d s after it was last seen',
    (seconds, after) => {
      const open = settle(undefined, judgement('unknown'), 0)
      const doubtful = { ...judgement('ok'), seconds, keeps: true }
      expect(settle(open, doubtful, after - 1)).toBe(open)
      expect(settle(open, doubtful, after).state).toBe('ok')
    }
  )
  it.each(/** @type {[string, string, string, string | undefined][]} */ ([
    ['ok', 'The heap grew by 5 MiB. By the latest readings, ok. If that lasts, this ' +
      'finding ends.', 'Earlier: It grows.', undefined],
    ['ok', 'The heap grew by 5 MiB. By the latest readings, it levels off. If that lasts, this ' +
      'finding ends.', 'Earlier: It grows.', 'it levels off'],
    ['unknown', 'The heap grew by 5 MiB; since then there are too few readings to judge it anew.',
      'Earlier: It grows.', 'it levels off'],
    ['suspected', 'The heap grew by 6 MiB.', 'It grows slower.', undefined]
  ]))('keeps a finding while judged "%s", without its forecast', (state, summary, text, latest) => {
    const proof = (/** @type {string} */ text) => /** @type {any} */ ([{ text }])
    const found = {
      state: /** @type {const} */ ('confirmed'),
      summary: 'The heap grows, and is full in 5 min.',
      standing: 'The heap grew by 5 MiB',
      evidence: proof('It grows.'),
      impact: '5 min are left.'
    }
    const weaker = {
      ...judgement(state),
      latest,
      ...(state === 'suspected' &&
        { standing: 'The heap grew by 6 MiB', evidence: proof('It grows slower.') })
    }
    let kept = settle(settle(undefined, found, 0), found, 2)
    for (const seconds of [10, 12]) {
      kept = settle(kept, weaker, seconds)
      expect(kept).toMatchObject({
        state: 'confirmed', judgement: { summary, evidence: [{ text }], impact: undefined }
      })
    }
  })
  it.each([
    ['suspected', 'critical', { keeps: false }, 'warning'],
    ['suspected', 'critical', { keeps: true }, 'critical'],
    ['suspected', 'info', { keeps: false }, 'info'],
    ['confirmed', 'critical', { keeps: false }, 'critical']
  ])('a %s finding, %s, ruled out with %o is %s', (state, severity, weaker, expected) => {
    const found = /** @type {any} */ ({
      ...judgement(state), severity, summary: 'grows.', standing: 'grew', seconds: 60
    })
    const before = settle(settle(undefined, found, 0), found, 2)
    const ends = settle(before, { ...judgement('ok'), ...weaker }, 20)
    expect(ends).toMatchObject({ state, judgement: { severity: expected } })
  })
  it.each([
    ['ok', 60, 600, 9, 'grows.'],
    ['ok', 60, null, 9, 'grows.'],
    ['ok', 60, 600, 10, 'grew. By the latest readings, ok. If that lasts, this finding ends.'],
    ['ok', 60, 40, 7, 'grew. By the latest readings, ok. If that lasts, this finding ends.'],
    ['ok', 20, 600, 7, 'grew. By the latest readings, ok. If that lasts, this finding ends.']
  ])('keeps the text of a finding while judged "%s" for a moment: %d s seen, %d left, at %d s', (
    state, seconds, secondsLeft, atSeconds, summary
  ) => {
    const found = {
      ...judgement('confirmed'), summary: 'grows.', standing: 'grew', seconds, secondsLeft
    }
    const certain = settle(settle(undefined, found, 0), found, 2)
    const once = settle(certain, judgement(state), 4)
    expect(settle(once, judgement(state), atSeconds).judgement.summary).toBe(summary)
    expect(settle(once, found, 6).judgement).toBe(found)
  })
  it('withdraws only the first suspicion at once when it is refuted', () => {
    const suspected = { ...judgement('suspected'), seconds: 600 }
    const refuted = { ...judgement('unknown'), refutes: true }
    const first = settle(settle(undefined, suspected, 600), refuted, 602)
    expect(first).toMatchObject({ state: 'unknown', withdrawals: 1 })
    expect(settle(settle(first, suspected, 800), refuted, 802).state).toBe('suspected')
    const confirmed = judgement('confirmed')
    const certain = settle(settle(undefined, confirmed, 0), confirmed, 2)
    expect(settle(certain, refuted, 4).state).toBe('confirmed')
  })
  it.each([[30, 30], [7200, 120]])(
    'does not suspect again growth that had ended for %d s, for %d s',
    (seconds, after) => {
      const ended = { ...judgement('ok'), seconds, refutes: true }
      const first = settle(settle(undefined, judgement('suspected'), 0), ended, 2)
      expect(first.state).toBe('ok')
      expect(settle(first, judgement('suspected'), 1 + after)).toBe(first)
      expect(settle(first, judgement('suspected'), 2 + after).state).toBe('suspected')
      expect(settle(first, judgement('confirmed'), 3).state).toBe('suspected')
    }
  )
  it.each([['ok', 50], ['unknown', 100]])(
    'withdraws a suspicion of growth over 100 s, then judged "%s", after %d s',
    (state, after) => {
      const found = settle(undefined, { ...judgement('suspected'), seconds: 100 }, 0)
      expect(settle(found, judgement(state), after - 1).state).toBe('suspected')
      expect(settle(found, judgement(state), after).state).toBe(state)
    }
  )
  it.each(/** @type {const} */ ([['suspected', 9], ['confirmed', 30]]))(
    'withdraws a %s finding over days after %d hours',
    (state, hours) => {
      const found = { ...judgement(state), seconds: 400_000 }
      const long = settle(settle(undefined, found, -14_400), found, 0)
      expect(long.state).toBe(state)
      expect(settle(long, judgement('ok'), hours * 3600 - 1).state).toBe(state)
      expect(settle(long, judgement('ok'), hours * 3600).state).toBe('ok')
    }
  )
  it('withdraws a confirmed finding that is refuted for long, and none without readings', () => {
    const confirmed = { ...judgement('confirmed'), seconds: 100 }
    const certain = settle(settle(undefined, confirmed, 0), confirmed, 2)
    const missing = judgement('unknown')
    const refuted = { ...missing, refutes: true }
    expect(settle(certain, refuted, 51).state).toBe('confirmed')
    expect(settle(certain, refuted, 52).state).toBe('unknown')
    expect(settle(certain, missing, 4000).state).toBe('confirmed')
  })
  it.each([80, 0])('keeps a finding while the same growth goes on, with %d s left', secondsLeft => {
    const found = { ...judgement('confirmed'), standing: 'Sockets grew by 50', secondsLeft: 90 }
    const weaker = {
      ...judgement('suspected'),
      standing: 'Sockets grew by 60',
      keeps: true,
      secondsLeft,
      impact: 'Little time is left.'
    }
    const confirmed = settle(settle(undefined, found, 0), found, 2)
    expect(settle(confirmed, weaker, 4000)).toMatchObject({
      state: 'confirmed',
      judgement: { summary: 'Sockets grew by 60.', secondsLeft, impact: 'Little time is left.' }
    })
  })
})

describe('evaluate', () => {
  const diagnosis = (id, changes) => ({
    id,
    title: id,
    severity: 'warning',
    scope: 'isolate',
    requires: [],
    uses: [],
    limits: {},
    explains: [],
    runbook: id,
    judge: () => ({ state: 'confirmed', summary: id, finding: {}, evidence: [] }),
    fix: () => [],
    ...changes
  })
  const run = (diagnoses, seconds = 10) => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    const errors = []
    for (let t = 1; t <= seconds; t++) {
      target.take(frame({ sequence: t, uptimeSeconds: t }), 0)
      evaluate(target, { diagnoses, onError: error => errors.push(error.message) })
    }
    const states = findCase(target).verdicts.map(({ diagnosis, state }) => [diagnosis, state])
    return { target, errors, states: Object.fromEntries(states) }
  }
  it('a diagnosis that throws is unknown and counted, and the others still run', () => {
    const { states, errors } = run([
      diagnosis('broken', {
        judge () {
          throw new Error('boom')
        }
      }),
      diagnosis('fine')
    ])
    expect(states).toEqual({ broken: 'unknown', fine: 'confirmed' })
    expect(errors[0]).toBe('the diagnosis broken failed')
  })
  it('missing evidence is unknown, never ok', () => {
    expect(run([diagnosis('needs', { requires: ['liveHeapBytes'] })]).states).toEqual({
      needs: 'unknown'
    })
  })
  it('a confirmed cause folds its symptoms', () => {
    const { target, states } = run([
      diagnosis('cause', { explains: ['symptom'] }),
      diagnosis('symptom')
    ])
    expect(states).toEqual({ cause: 'confirmed', symptom: 'ok' })
    const { targetMetrics } = require('../../exporter/catalog/target-metrics')
    const row = defined(targetMetrics.find(({ name }) => name === 'memwatch_verdict_info'))
    const context = { nowUnixMs: 0, window: defined(target.window()), signal: () => null }
    expect(row.read(target, context)).toEqual([
      expect.objectContaining({ labels: expect.objectContaining({ diagnosis: 'cause' }) })
    ])
    const { ruledOut } = defined(primaryOf(findCase(target).verdicts))
    expect(ruledOut).toEqual([{ diagnosis: 'symptom', text: 'a symptom of cause' }])
  })
  /** @param {object} row evidence of a confirmed finding */
  const found = row =>
    ({ judge: () => ({ state: 'confirmed', summary: '', finding: {}, evidence: [row] }) })
  it.each(/** @type {const} */ ([
    ['liveHeapGrowthBytesPerSecond', 500, 'ok'],
    ['outsideHeapGrowthBytesPerSecond', 501, 'confirmed'],
    ['outsideHeapLastingGrowthBytesPerSecond', 500, 'ok'],
    ['liveHeapLastingGrowthBytesPerSecond', 501, 'confirmed'],
    ['liveHeapRiseBytes', 1, 'confirmed']
  ]))('handles that may hold 100 bytes each, 5 a second, leave a symptom of %s %d %s', (
    signal, value, state
  ) => {
    const handles = { signal: 'socketsPerSecond', value: 5 }
    const { states } = run([
      diagnosis('cause', { explains: ['symptom'], explainsBytesEach: 100, ...found(handles) }),
      diagnosis('symptom', found({ signal, value }))
    ])
    expect(states).toEqual({ cause: 'confirmed', symptom: state })
  })
  it.each(/** @type {const} */ ([
    ['outsideHeapGrowthBytesPerSecond', 120, 'ok'],
    ['outsideHeapGrowthBytesPerSecond', 130, 'confirmed'],
    ['allocatorSlackBytes', 130, 'ok']
  ]))('Buffers that grow by 100 bytes a second leave a symptom of %s %d %s', (
    signal, value, state
  ) => {
    const own = 'arrayBuffersGrowthBytesPerSecond'
    const { states } = run([
      diagnosis('cause', {
        explains: ['symptom'], explainsGrowthOf: own, ...found({ signal: own, value: 100 })
      }),
      diagnosis('symptom', found({ signal, value }))
    ])
    expect(states).toEqual({ cause: 'confirmed', symptom: state })
  })
  it('a fix that throws does not affect the verdict', () => {
    const { states, errors } = run([diagnosis('a', { fix () { throw new Error('boom') } })])
    expect(states).toEqual({ a: 'confirmed' })
    expect(errors).toContain('the fix of a failed')
  })
  it.each(/** @type {const} */ ([['confirmed', 328], ['suspected', 58]]))(
    'a severity rises at once, and falls late: %s, after %d s', (state, fallsAt) => {
      const at = { 10: 'info', 20: 'critical', 30: 'warning' }
      let severity = 'info'
      const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
      const one = diagnosis('a', { judge: () => ({ state, severity, summary: 'a' }) })
      const seen = {}
      for (let t = 2; t <= 340; t += 2) {
        severity = at[t] ?? severity
        target.take(frame({ sequence: t, uptimeSeconds: t }), 0)
        evaluate(target, { diagnoses: [one] })
        seen[t] = findCase(target).verdicts[0].severity
      }
      expect([seen[18], seen[20], seen[30], seen[fallsAt - 2], seen[fallsAt]]).toEqual([
        'info',
        'critical',
        'critical',
        'critical',
        'warning'
      ])
    })
  it('a confirmed cause is at least as severe as the symptom that it folds', () => {
    const { target } = run([
      diagnosis('cause', { explains: ['symptom'] }),
      diagnosis('symptom', { severity: 'critical' })
    ])
    expect(primaryOf(findCase(target).verdicts)).toMatchObject({
      diagnosis: 'cause',
      severity: 'critical'
    })
  })
  it('the primary verdict is the most severe, then the earliest', () => {
    const info = { severity: 'info' }
    expect(
      primaryOf(
        findCase(run([diagnosis('a', info), diagnosis('b'), diagnosis('c')]).target).verdicts
      )?.diagnosis
    ).toBe('b')
  })
  it('a suspected verdict is never primary', () => {
    const { target } = run([
      diagnosis('a', { judge: () => ({ state: 'suspected', summary: 'a' }) })
    ])
    expect(primaryOf(findCase(target).verdicts)).toBeNull()
  })
})

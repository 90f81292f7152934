'use strict'

const { Target } = require('../../engine/history/target')
const { findCase } = require('../../engine/verdicts/case')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { defined } = require('../support/defined')
const { frame, hello, MIB } = require('../support/frames')

/**
 * Judges a process that started under one container limit and continues under another.
 * @param {{ startMib?: number, limitsMib: (number | null)[], heapLimitMib?: number,
 *   liveMib?: number, changes?: object }} life limitsMib: limit of the container in each frame
 */
function judge ({ startMib = 512, limitsMib, heapLimitMib = 259, liveMib = 100, changes = {} }) {
  const target = new Target({
    hello: /** @type {any} */ (hello({ constrainedBytes: startMib * MIB, ...changes })),
    name: 'api',
    thread: 'main'
  })
  limitsMib.forEach((limitMib, i) => {
    target.take(/** @type {any} */ (frame({
      sequence: i + 1,
      uptimeSeconds: 10 * (i + 1),
      values: {
        rssBytes: 200 * MIB,
        rssAnonBytes: 160 * MIB,
        heapPhysicalBytes: 120 * MIB,
        heapSizeLimitBytes: heapLimitMib * MIB,
        externalBytes: MIB,
        liveHeapBytes: liveMib * MIB,
        liveHeapMajors: i + 1,
        containerUsageBytes: 200 * MIB,
        ...(limitMib !== null && { containerLimitBytes: limitMib * MIB })
      }
    })), 1000 * i)
    evaluate(target)
  })
  return defined(
    findCase(target).verdicts.find(({ diagnosis }) => diagnosis === 'container-limit-mismatch')
  )
}
const steps = (count, limit) => Array(count).fill(limit)

describe('a container that is resized in place', () => {
  it('with a raised limit: V8 keeps the heap limit of its start', () => {
    const { state, severity, summary, evidence, fix } = judge({
      limitsMib: [...steps(3, 512), ...steps(6, 1024)]
    })
    expect([state, severity, summary]).toEqual([
      'confirmed',
      'info',
      "The container's limit was raised from 512 MiB to 1024 MiB while the process ran: V8 keeps " +
        'the heap limit of 259 MiB that it chose at the start.'
    ])
    expect(evidence[0].text).toBe(
      'The heap may grow to 259 MiB; after a restart V8 would choose 524 MiB.'
    )
    expect(fix[0].title).toMatch(/^Restart the process/)
    expect(fix[1].change.flag).toMatch(/^--max-old-space-size=\d+$/)
    expect(fix[0].predicted[0]).toMatchObject({
      signal: 'heapSizeLimitBytes', from: 259 * MIB, to: 524 * MIB
    })
  })
  it('is a warning if the live heap needs the additional memory', () => {
    const limitsMib = [...steps(3, 512), ...steps(6, 1024)]
    expect(judge({ limitsMib, liveMib: 204 }).severity).toBe('info')
    const tight = judge({ limitsMib, liveMib: 206 })
    expect([tight.severity, tight.impact]).toEqual([
      'warning', expect.stringContaining('heap out of memory')
    ])
  })
  it('is detected if the limit was raised before the first frame', () => {
    expect(judge({ limitsMib: steps(9, 1024) }).summary).toContain('raised from 512 MiB')
  })
  it('with a lowered limit: the heap may outgrow the container, and a restart is a fix', () => {
    const { state, evidence, fix } = judge({
      startMib: 2048, heapLimitMib: 1048, limitsMib: [...steps(3, 2048), ...steps(6, 512)]
    })
    expect(state).toBe('confirmed')
    expect(evidence.map(({ text }) => text)).toContain(
      'The limit was lowered from 2048 MiB to 512 MiB while the process ran: V8 keeps the heap ' +
        'limit that it chose at the start.'
    )
    expect(fix.map(({ title }) => title)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^Restart/), expect.stringMatching(/^Limit/)])
    )
  })
  it.each([
    ['an unchanged limit', { limitsMib: steps(9, 512) }],
    ['a heap that a flag sizes', {
      limitsMib: [...steps(3, 512), ...steps(6, 1024)],
      changes: { execArgv: ['--max-old-space-size=256'] }
    }],
    ['a heap limit that is not that of the old limit', {
      limitsMib: [...steps(3, 512), ...steps(6, 1024)], heapLimitMib: 362
    }],
    ['a limit so high that V8 chooses the same', {
      startMib: 5120, heapLimitMib: 2096, limitsMib: [...steps(3, 5120), ...steps(6, 6144)]
    }],
    ['a limit that was removed', { limitsMib: [...steps(3, 512), ...steps(6, null)] }]
  ])('is no finding: %s', (_, life) => {
    expect(judge(life).state).toBe('ok')
  })
})

describe('a process without a memory limit', () => {
  const life = (/** @type {number} */ heapLimitMib, /** @type {object} */ changes = {}) => ({
    heapLimitMib,
    limitsMib: steps(9, null),
    changes: { constrainedBytes: undefined, hostMemoryBytes: 8192 * MIB, ...changes }
  })

  it('whose heap may outgrow the machine gets a limit that fits', () => {
    const { state, severity, summary, fix } = judge(life(16_432))
    expect([state, severity, summary]).toEqual([
      'confirmed', 'info', "V8 may use 16432 MiB of heap: more than the machine's 8192 MiB."
    ])
    const [{ from, to }] = fix[0].predicted
    expect([from > 8192 * MIB, to < 8192 * MIB, fix[0].change.flag]).toEqual([
      true, true, expect.stringMatching(/^--max-old-space-size=\d{4}$/)
    ])
  })
  it.each([
    ['a heap that fits the machine', life(4144)],
    ['a machine of unknown size', life(16_432, { hostMemoryBytes: undefined })]
  ])('is no finding: %s', (_, life) => {
    expect(judge(life).state).toBe('ok')
  })
})

'use strict'

const path = require('node:path')
const { execFile } = require('node:child_process')
const { expectNoLeak } = require('../../cli/testing')
const { environment } = require('../support/agent-collector')

class Session {
  constructor () {
    this.visits = new Array(40).fill(1.5)
  }
}

describe('expectNoLeak, in jest', () => {
  afterEach(() => jest.useRealTimers())

  it('accepts work that retains nothing', async () => {
    const ring = /** @type {unknown[]} */ ([])
    let calls = 0
    const { bytesPerCall } = await expectNoLeak(() => {
      ring[calls++ % 20] = { at: calls, text: [calls] }
    })
    expect(bytesPerCall).toBeLessThan(64)
    expect(calls).toBeGreaterThanOrEqual(24 * 50)
  })
  it('rejects a leak under fake timers, with its size and place', async () => {
    jest.useFakeTimers()
    const kept = /** @type {unknown[]} */ ([])
    const error = await expectNoLeak(async () => { kept.push(new Session()) }, { calls: 20 })
      .catch(error => error)
    const [, bytes] = /each call retains (\d+) bytes/.exec(error.message) ?? []
    expect(error.name).toBe('AssertionError')
    expect(Number(bytes)).toBeGreaterThan(320)
    expect(Number(bytes)).toBeLessThan(800)
    expect(error.message).toMatch(/Most of it is allocated in .*testing\.test\.js:\d+\)/)
  })
  it('rethrows an error of the work', async () => {
    await expect(expectNoLeak(() => { throw new Error('of the work') })).rejects.toThrow('of the work')
  })
  it.each([
    [{ calls: 0 }, 'calls: expected a whole number from 1 on'],
    [{ leastBytes: -1 }, 'leastBytes: expected bytes'],
    [{ falseAlarms: 0.3 }, 'falseAlarms: expected a rate'],
    [{ call: 3 }, 'unknown option call']
  ])('refuses %j', async (options, text) => {
    await expect(expectNoLeak(() => {}, /** @type {any} */ (options))).rejects.toThrow(text)
  })
})

it('expectNoLeak works in node:test, with its mocked timers', async () => {
  const file = path.join(__dirname, 'testing-in-node.mjs')
  /** @type {{ code: number, stdout: string }} */
  const { code, stdout } = await new Promise(resolve => {
    execFile(
      process.execPath, ['--test', '--test-reporter=tap', file], { env: environment() },
      (error, stdout) => resolve({ code: Number(error?.code ?? 0), stdout })
    )
  })
  expect(stdout).toContain('ok 1 - retains nothing')
  expect(stdout).toContain('not ok 2 - leaks')
  expect(stdout).toMatch(/memory leak: each call retains \d+ bytes/)
  expect(code).toBe(1)
})

'use strict'

const assert = require('node:assert')
const sinon = require('sinon')
const { realWork } = require('./real-work')

describe('sinon', () => {
  /** @type {sinon.SinonFakeTimers} */
  let clock
  // The functions of Node.js that a child process needs stay real.
  beforeEach(() => { clock = sinon.useFakeTimers({ toNotFake: ['nextTick', 'queueMicrotask'] }) })
  afterEach(() => clock.restore())

  it('counts one timer before and after real work', async () => {
    setTimeout(() => {}, 10_000)
    assert.strictEqual(clock.countTimers(), 1)
    await realWork()
    assert.strictEqual(clock.countTimers(), 1)
  })

  it('runs all timers, and comes to an end', async () => {
    let fired = 0
    setTimeout(() => { fired++ }, 60_000)
    await realWork()
    clock.runAll()
    assert.deepStrictEqual([fired, clock.countTimers()], [1, 0])
  })

  it('fires its own timer next', async () => {
    const fired = sinon.fake()
    setTimeout(fired, 60_000)
    await realWork()
    clock.next()
    assert.strictEqual(fired.callCount, 1)
  })
})

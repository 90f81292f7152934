'use strict'

const { realWork } = require('./real-work')

beforeEach(() => { jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] }) })
afterEach(() => { jest.useRealTimers() })

it('counts one timer before and after real work', async () => {
  setTimeout(() => {}, 10_000)
  expect(jest.getTimerCount()).toBe(1)
  await realWork()
  expect(jest.getTimerCount()).toBe(1)
})

it('runs all timers, and comes to an end', async () => {
  const fired = jest.fn()
  setTimeout(fired, 60_000)
  await realWork()
  jest.runAllTimers()
  expect(fired).toHaveBeenCalledTimes(1)
  expect(jest.getTimerCount()).toBe(0)
})

it('fires its own timer next', async () => {
  const fired = jest.fn()
  setTimeout(fired, 60_000)
  await realWork()
  jest.advanceTimersToNextTimer()
  expect(fired).toHaveBeenCalledTimes(1)
})

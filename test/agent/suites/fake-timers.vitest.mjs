import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { realWork } from './real-work.js'

beforeEach(() => { vi.useFakeTimers() })
afterEach(() => { vi.useRealTimers() })

it('counts one timer before and after real work', async () => {
  setTimeout(() => {}, 10_000)
  expect(vi.getTimerCount()).toBe(1)
  await realWork()
  expect(vi.getTimerCount()).toBe(1)
})

it('runs all timers, and comes to an end', async () => {
  let fired = 0
  setTimeout(() => { fired++ }, 60_000)
  await realWork()
  vi.runAllTimers()
  expect(fired).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})

it('fires its own timer next', async () => {
  const fired = vi.fn()
  setTimeout(fired, 60_000)
  await realWork()
  vi.advanceTimersToNextTimer()
  expect(fired).toHaveBeenCalledTimes(1)
})

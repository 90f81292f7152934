'use strict'

const assert = require('node:assert')
const { afterEach, beforeEach, mock, it } = require('node:test')
const { realWork } = require('./real-work')

beforeEach(() => mock.timers.enable())
afterEach(() => mock.timers.reset())

it('runs all timers, and comes to an end', async () => {
  let fired = 0
  setTimeout(() => { fired++ }, 60_000)
  await realWork()
  mock.timers.runAll()
  assert.strictEqual(fired, 1)
})

it('fires its own interval as often as it is due', async () => {
  let fired = 0
  const interval = setInterval(() => { fired++ }, 1000)
  await realWork()
  for (let second = 0; second < 10; second++) mock.timers.tick(1000)
  clearInterval(interval)
  assert.strictEqual(fired, 10)
})

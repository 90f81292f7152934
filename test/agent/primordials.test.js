'use strict'

const { Worker } = require('node:worker_threads')
const { once } = require('node:events')
const { startCost, nowMs } = require('../../agent/primordials')

const spin = (/** @type {number} */ ms) => {
  for (const end = nowMs() + ms; nowMs() < end;);
}

describe('the cost of work', () => {
  it('is no wait: neither for a busy CPU nor for a lock', () => {
    const cost = startCost()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    expect(cost()).toBeLessThan(0.1)
  })
  it('is at most the time that passed, while other threads compute, too', async () => {
    const worker = new Worker('for (;;);', { eval: true })
    await once(worker, 'online')
    const began = nowMs()
    const cost = startCost()
    spin(200)
    const seconds = cost()
    expect(seconds).toBeLessThanOrEqual((nowMs() - began) / 1000)
    expect(seconds).toBeGreaterThan(0)
    await worker.terminate()
  })
})

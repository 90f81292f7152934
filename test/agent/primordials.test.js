'use strict'

const { Worker } = require('node:worker_threads')
const { once } = require('node:events')
const { measureCpu, nowMs } = require('../../agent/primordials')

const spin = (/** @type {number} */ ms) => {
  for (const end = nowMs() + ms; nowMs() < end;);
}

describe('measured CPU time', () => {
  it('excludes waits', () => {
    const cpuSeconds = measureCpu()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    expect(cpuSeconds()).toBeLessThan(0.1)
  })
  it('is at most the time that passed, even if other threads compute', async () => {
    const worker = new Worker('for (;;);', { eval: true })
    await once(worker, 'online')
    const began = nowMs()
    const cpuSeconds = measureCpu()
    spin(200)
    const seconds = cpuSeconds()
    expect(seconds).toBeLessThanOrEqual((nowMs() - began) / 1000)
    expect(seconds).toBeGreaterThan(0)
    await worker.terminate()
  })
})

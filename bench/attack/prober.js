'use strict'

// Sends requests like the kubelet and Prometheus: `node prober.js TIMEOUT_MS`. It is a process of
// its own, so that it measures the exporter and not the attacker. It sends { path, ms, failure } to
// its parent for every answer.
const { setTimeout: wait } = require('node:timers/promises')
const { request } = require('./request')
const { KUBELET, PROMETHEUS } = require('./places')

const PROBE_EVERY_MS = 1000
const SCRAPE_EVERY_MS = 5000
/** Prometheus' own default. */
const SCRAPE_TIMEOUT_MS = 10_000

/**
 * @param {string} from
 * @param {string} path
 * @param {number} timeoutMs
 */
async function ask (from, path, timeoutMs) {
  const began = performance.now()
  const { status, message } = await request({ from, path, timeoutMs }).then(
    ({ status }) => ({ status, message: `status ${status}` }),
    error => ({ status: 0, message: error.code ?? error.message })
  )
  process.send?.({
    path,
    ms: performance.now() - began,
    failure: status === 200 ? undefined : message
  }, undefined, undefined, () => {})
}

/**
 * @param {number} everyMs
 * @param {() => Promise<void>} work
 */
async function each (everyMs, work) {
  for (;;) {
    const began = performance.now()
    await work()
    await wait(Math.max(0, began + everyMs - performance.now()))
  }
}

process.on('disconnect', () => process.exit())
const timeoutMs = Number(process.argv[2])
each(PROBE_EVERY_MS, () => ask(KUBELET, '/-/healthy', timeoutMs))
each(PROBE_EVERY_MS, () => ask(KUBELET, '/-/ready', timeoutMs))
each(SCRAPE_EVERY_MS, () => ask(PROMETHEUS, '/metrics', SCRAPE_TIMEOUT_MS))

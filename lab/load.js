'use strict'

const http = require('node:http')

/**
 * Open-loop load: requests leave at the set rate, answered or not, as users send them.
 * @typedef {object} Load
 * @property {number} port on 127.0.0.1
 * @property {Phase[]} phases one after the other; the last one stays, or all repeat
 * @property {boolean} [repeat]
 * @property {Request[]} requests sent in turn
 * @property {number} [keys] `{key}` in a path or body becomes a random integer below this; 1000 by
 *   default
 * @property {number} [inFlight] limit of unanswered requests; further ones are counted, not sent.
 *   256 by default
 *
 * @typedef {object} Phase
 * @property {number} perSecond
 * @property {number} [from] rate at the start of the phase as a share of perSecond, for a ramp; 1
 *   by default
 * @property {number} [seconds]
 *
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {string} [body] JSON
 * @property {number} [bodyBytes] instead of `body`: this many bytes
 */

const TICK_MS = 10

/**
 * @param {Load} load
 * @param {number} elapsedSeconds
 * @returns {number} current requests per second
 */
function requestsPerSecondAt ({ phases, repeat }, elapsedSeconds) {
  const total = phases.reduce((sum, phase) => sum + (phase.seconds ?? 0), 0)
  let at = repeat ? elapsedSeconds % total : elapsedSeconds
  for (const { perSecond, from = 1, seconds = Infinity } of phases) {
    if (at < seconds) {
      return perSecond * (seconds === Infinity ? 1 : from + ((1 - from) * at) / seconds)
    }
    at -= seconds
  }
  return phases[phases.length - 1].perSecond
}

/** @param {Load} load */
function generate (load) {
  const { port, requests, keys = 1000, inFlight = 256 } = load
  const agent = new http.Agent({ keepAlive: true, maxSockets: inFlight })
  const payloads = requests.map(({ bodyBytes = 0 }) => Buffer.alloc(bodyBytes, 'memwatch'))
  const began = performance.now()
  let before = began
  let due = 0
  let unanswered = 0
  let turn = 0

  setInterval(() => {
    const now = performance.now()
    due += requestsPerSecondAt(load, (now - began) / 1000) * (now - before) / 1000
    before = now
    for (; due >= 1; due--) if (unanswered < inFlight) send(turn++ % requests.length)
  }, TICK_MS)

  /** @param {number} index */
  function send (index) {
    const { method, path, body, bodyBytes } = requests[index]
    const key = String(Math.floor(Math.random() * keys))
    const payload = bodyBytes ? payloads[index] : body?.replaceAll('{key}', key)
    unanswered++
    const request = http.request({
      agent,
      port,
      host: '127.0.0.1',
      method,
      path: path.replaceAll('{key}', key)
    })
    request.on('response', (response) => response.resume())
    request.on('error', () => {})
    request.on('close', () => { unanswered-- })
    if (payload) request.setHeader('content-length', Buffer.byteLength(payload))
    request.end(payload)
  }
}

if (require.main === module) {
  process.stdin.resume().on('close', () => process.exit(0)).on('error', () => process.exit(0))
  // Ctrl-C reaches all processes of the terminal; the app decides when this process ends.
  process.on('SIGINT', () => {})
  generate(JSON.parse(process.argv[2]))
}

module.exports = { requestsPerSecondAt }

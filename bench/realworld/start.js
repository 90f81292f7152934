'use strict'

/**
 * Runs one side of a case, from the folder where its packages are installed: `case.js` is a copy of
 * the case's file, so that its requires find those packages.
 *
 *   node start.js app       the program under test
 *   node start.js traffic   its clients, a process outside of the container
 */

const http = require('node:http')
// @ts-expect-error: it is copied beside this file
const sides = require('./case')

const TICK_MS = 20
/** Number of calls in one turn of the event loop: a turn costs more than a small call. */
const CALLS_A_TURN = 10
/** Longest pause after which missed calls are made up. */
const MOST_OWED_SECONDS = 0.2

/**
 * Calls `work (n)` at a constant rate. Each call comes from the event loop, like a request: V8
 * would inline calls in a loop, and attribute their memory to this file.
 * @param {number} callsPerSecond
 * @param {(n: number) => void} work
 */
function perSecond (callsPerSecond, work) {
  let n = 0
  let owed = 0
  let lastMs = performance.now()
  let isTurning = false
  function turn () {
    isTurning = owed >= 1
    if (!isTurning) return
    for (let i = 0; i < CALLS_A_TURN && owed >= 1; i++) {
      owed--
      setImmediate(work, n++)
    }
    setImmediate(turn)
  }
  setInterval(() => {
    const nowMs = performance.now()
    owed = Math.min(
      owed + ((nowMs - lastMs) * callsPerSecond) / 1000,
      Math.max(1, callsPerSecond * MOST_OWED_SECONDS)
    )
    lastMs = nowMs
    if (!isTurning) turn()
  }, TICK_MS)
}

/**
 * An array of numbers that takes about this many bytes of heap. A repeated string would be a rope
 * of shared halves.
 * @param {number} bytes
 * @param {number} n
 */
const payload = (bytes, n) => Array.from({ length: Math.ceil(bytes / 8) }, (_, k) => k + n / 7)

const agent = new http.Agent({ keepAlive: true, maxSockets: 32 })
/**
 * Sends one request, discards its answer, and ignores errors.
 * @param {number} port
 * @param {import('node:http').RequestOptions & { body?: string | Buffer }} [options]
 */
function request (port, { body, ...options } = {}) {
  const sent = http.request({ host: '127.0.0.1', port, agent, ...options }, answer => answer.resume())
  sent.on('error', () => {})
  sent.end(body)
}

process.on('SIGTERM', () => process.exit(0))
sides[/** @type {'app' | 'traffic'} */ (process.argv[2])]({
  fixed: process.env.REALWORLD_FORM === 'fixed',
  port: Number(process.env.PORT),
  perSecond,
  payload,
  request
})

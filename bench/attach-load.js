'use strict'

/**
 * Load of bench/attach.js, in a process of its own: requests at a fixed rate over connections that
 * stay open. Sends its counts to the parent when it is asked to report.
 */

const http = require('node:http')

/** A low rate, because on one busy core a higher rate would measure the scheduler. */
const RATE = 40
const TICK_MS = 5
/** Time after which a request without an answer is lost. */
const LOST_MS = 10_000

const port = Number(process.argv[2])
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
/** Latencies in milliseconds, by phase. @type {Record<string, number[]>} */
const taken = {}
let phase = 'quiet'
let lost = 0
let sent = 0
let isOver = false
/** @type {Set<http.ClientRequest>} */
const open = new Set()

function request () {
  const began = performance.now()
  const during = phase
  let isCounted = false
  const end = (/** @type {boolean} */ isAnswered) => {
    if (isCounted) return
    isCounted = true
    open.delete(asked)
    if (!isAnswered) lost++
    else (taken[during] ??= []).push(performance.now() - began)
    if (isOver && open.size === 0) report()
  }
  const asked = http.get({ host: '127.0.0.1', port, agent, timeout: LOST_MS }, response => {
    response.resume().once('end', () => end(response.complete && response.statusCode === 200))
    response.once('error', () => end(false))
  })
  open.add(asked)
  sent++
  asked.once('error', () => end(false)).once('timeout', () => asked.destroy())
}

function report () {
  process.send?.({ taken, lost, sent }, undefined, undefined, () => process.exit())
}

let due = performance.now()
const timer = setInterval(() => {
  for (; due <= performance.now(); due += 1000 / RATE) request()
}, TICK_MS)

process.on('message', message => {
  if (message === 'end') {
    isOver = true
    clearInterval(timer)
    if (open.size === 0) report()
  } else {
    phase = String(message)
  }
})

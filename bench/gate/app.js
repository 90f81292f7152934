'use strict'

// A worker of a queue: 250 jobs a second, each parsed, kept among the last ones, and answered.
// About LEAK_BYTES of each job are leaked. The last line of stdout reports the number of jobs.

/**
 * Heap bytes of an array besides its elements of 8 bytes: object, header of the elements, and its
 * place in the list.
 */
const ARRAY_BYTES = 16 + 16 + 8
const JOBS_A_TICK = 5
const TICK_MS = 20
const RING = 200

const leakBytes = Number(process.env.LEAK_BYTES ?? 0)
const kind = process.env.LEAK_KIND ?? 'heap'
/** The last jobs. @type {unknown[]} */
const ring = []
/** @type {unknown[]} */
const leaked = []
let jobs = 0
let answered = 0

/** @param {number} length */
const numbers = length => {
  const values = []
  for (let i = 0; i < length; i++) values[i] = i + 0.5
  return values.slice() // The copy has no spare capacity.
}

function work () {
  const user = jobs % 5000
  const message = JSON.stringify({
    user, roles: Array.from({ length: 20 }, (_, i) => `${user}-${i}`), text: 'x'.repeat(200)
  })
  const job = JSON.parse(message)
  ring[jobs++ % RING] = job
  if (kind === 'buffer' && leakBytes > 0) leaked.push(Buffer.alloc(leakBytes))
  else if (leakBytes > 0) leaked.push(numbers((leakBytes - ARRAY_BYTES) / 8))
  answered += JSON.stringify({ ...job, at: Date.now() }).length
}

setInterval(() => { for (let i = 0; i < JOBS_A_TICK; i++) work() }, TICK_MS)
process.once('SIGTERM', () => {
  console.log(JSON.stringify({ requests: jobs, answered }))
  process.exit(0)
})

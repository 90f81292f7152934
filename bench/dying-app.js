'use strict'

/**
 * Dies in the way of its first argument two seconds after its start, or waits to be killed. `npm
 * run bench:deaths` runs it.
 */

const MIB = 2 ** 20
const DIES_AFTER_MS = 2000
/** @type {unknown[]} */
const kept = []

const leak = () => {
  for (let i = 0; i < 20_000; i++) kept.push({ id: i, name: `row ${i}`, tags: [i, i + 1] })
}
const fill = () => kept.push(Buffer.allocUnsafeSlow(4 * MIB).fill(1))

/** @type {Record<string, () => void>} */
const ways = {
  'exit-0': () => process.exit(0),
  'exit-3': () => process.exit(3),
  'sigterm-handled': () => { process.kill(process.pid, 'SIGTERM') },
  throw: () => { throw new Error('as asked') },
  rejection: () => { Promise.reject(new Error('as asked')) },
  abort: () => process.abort(),
  heap: () => { setInterval(leak, 20) },
  'heap-blocking': () => { for (;;) leak() },
  memory: () => { setInterval(fill, 20) },
  'memory-blocking': () => { for (;;) fill() },
  block: () => { for (;;); },
  wait: () => {}
}

const way = process.argv[2]
if (way === 'sigterm-handled') process.on('SIGTERM', () => process.exit(0))
setInterval(() => {}, 1000)
setTimeout(() => {
  console.log('now')
  ways[way]()
}, DIES_AFTER_MS)

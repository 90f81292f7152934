'use strict'

/**
 * Dies in the way of its first argument two seconds after its start, or waits to be killed. A
 * second argument sets another lifetime, in seconds. With a third argument, in MiB, it starts to
 * leak after two seconds: in small steps that fill this memory within the lifetime. `npm run
 * bench:deaths` runs it.
 */

const MIB = 2 ** 20
const [, , way, lifeSeconds, roomMib] = process.argv
const DIES_AFTER_MS = 2000
const LEAK_EVERY_MS = 20
/** Bytes of a row of `leak`, measured on Node.js 20. */
const ROW_BYTES = 132
/** @type {unknown[]} */
const kept = []

/** Bytes per step that fill the given memory within the given lifetime. */
const slowBytes = Number(roomMib) * MIB / Number(lifeSeconds) * LEAK_EVERY_MS / 1000
const rows = roomMib ? Math.ceil(slowBytes / ROW_BYTES) : 20_000
const fillBytes = roomMib ? Math.ceil(slowBytes) : 4 * MIB

const leak = (count = 20_000) => {
  for (let i = 0; i < count; i++) kept.push({ id: i, name: `row ${i}`, tags: [i, i + 1] })
}
const fill = () => kept.push(Buffer.allocUnsafeSlow(fillBytes).fill(1))

/** @type {Record<string, () => void>} */
const ways = {
  'exit-0': () => process.exit(0),
  'exit-3': () => process.exit(3),
  'sigterm-handled': () => { process.kill(process.pid, 'SIGTERM') },
  throw: () => { throw new Error('as asked') },
  rejection: () => { Promise.reject(new Error('as asked')) },
  abort: () => process.abort(),
  heap: () => { setInterval(leak, LEAK_EVERY_MS, rows) },
  'heap-blocking': () => { for (;;) leak() },
  memory: () => { setInterval(fill, LEAK_EVERY_MS) },
  'memory-blocking': () => { for (;;) fill() },
  block: () => { for (;;); },
  wait: () => {}
}

if (way === 'sigterm-handled') process.on('SIGTERM', () => process.exit(0))
setInterval(() => {}, 1000)
setTimeout(() => {
  console.log('now')
  ways[way]()
}, roomMib || !lifeSeconds ? DIES_AFTER_MS : 1000 * Number(lifeSeconds))

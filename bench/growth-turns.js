'use strict'

// Preloaded before the agent by bench/growth.js: measures how long each timer callback of the agent
// held the loop, and how long the thread waited for a CPU meanwhile. It wraps the global timers:
// the agent uses them, the app those of node:timers.
const fs = require('node:fs')

/** @type {{ heldMs: number, waitedMs: number }[]} */
const turns = []
const schedstat = fs.openSync('/proc/thread-self/schedstat', 'r')
const text = Buffer.alloc(128)
/** Time in the run queue so far: Documentation/scheduler/sched-stats.rst. */
const waitedMs = () =>
  Number(
    text.toString('latin1', 0, fs.readSync(schedstat, text, 0, text.length, 0)).split(' ')[1]
  ) / 1e6

for (const name of /** @type {const} */ (['setTimeout', 'setInterval', 'setImmediate'])) {
  const original = globalThis[name]
  Object.defineProperty(globalThis, name, {
    value: (/** @type {(...args: any[]) => void} */ callback, /** @type {any[]} */ ...rest) => /** @type {any} */ (original)((/** @type {any[]} */ ...args) => {
      const waitedBeforeMs = waitedMs()
      const began = performance.now()
      callback(...args)
      const heldMs = performance.now() - began
      turns.push({ heldMs, waitedMs: waitedMs() - waitedBeforeMs })
    }, ...rest)
  })
}

process.on('message', () => {
  process.send?.(turns.splice(0))
})
process.channel?.unref()

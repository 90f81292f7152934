'use strict'

// Preloaded before the agent by bench/growth.js: how long each callback of the agent's timers held the loop. The app uses those of node:timers.
/** @type {number[]} */
const heldMs = []

for (const name of /** @type {const} */ (['setTimeout', 'setInterval', 'setImmediate'])) {
  const original = globalThis[name]
  Object.defineProperty(globalThis, name, {
    value: (/** @type {(...args: any[]) => void} */ callback, /** @type {any[]} */ ...rest) => /** @type {any} */ (original)((/** @type {any[]} */ ...args) => {
      const began = performance.now()
      callback(...args)
      heldMs.push(performance.now() - began)
    }, ...rest)
  })
}

process.on('message', () => {
  process.send?.(heldMs.splice(0))
})
process.channel?.unref()

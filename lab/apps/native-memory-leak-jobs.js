'use strict'

// A job runner gives each tenant's plugin a WebAssembly memory of its own, and keeps all memories.
// Most versions of Node.js count them as external memory that is no Buffer. `--fixed` uses one
// memory for all plugins.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const PAGES = 16 // of 64 KiB
const { WebAssembly } = /** @type {any} */ (globalThis)
/** @type {{ buffer: ArrayBuffer }[]} */
const memories = []
const run = appRun({ work: 'jobs', figures: () => ({ memories: memories.length }) })

/** @param {number} number */
function plugin (number) {
  if (!run.fixed || memories.length === 0) {
    memories.push(new WebAssembly.Memory({ initial: PAGES, maximum: PAGES }))
  }
  const memory = new Uint8Array(memories[memories.length - 1].buffer)
  memory.fill(number % 250)
  return Array.from({ length: 9000 }, (_, i) => ({ number, i, text: `result ${i}` })).length
}

withJobs(run, { perSecond: 4, job: plugin })

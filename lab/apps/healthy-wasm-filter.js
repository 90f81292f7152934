'use strict'

// An audio filter uses one WebAssembly memory of 120 MB all the time, created at the start: it is
// neither heap nor Buffer, and constant.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const PAGES = 1900 // of 64 KiB
const { WebAssembly } = /** @type {any} */ (globalThis)
const memory = new Uint8Array(
  new WebAssembly.Memory({ initial: PAGES, maximum: PAGES }).buffer
).fill(1)
const run = appRun({ work: 'blocks' })

/** @param {number} number */
function filter (number) {
  const from = (number * 65_536) % (memory.length - 65_536)
  for (let i = from; i < from + 65_536; i += 16) memory[i] = (memory[i] * 3 + number) & 255
  return Array.from({ length: 150 }, (_, i) => ({ i, peak: memory[from + i] })).length
}

withJobs(run, { perSecond: 80, job: filter })

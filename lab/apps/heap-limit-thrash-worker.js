'use strict'

// The live data of a worker thread nearly fill its heap limit of 192 MB: the worker spends its time
// in GCs, while the main thread is idle. `--fixed` multiplies the limit by four.
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')
const { fillHeap } = require('../fill-heap')

const HELD_OF_MB = 192
/** Pause between the GCs of filling the heap and those of the jobs. */
const REST_MS = 800

if (isMainThread) {
  const run = appRun({ work: 'jobs' })
  const worker = new Worker(__filename, {
    resourceLimits: { maxOldGenerationSizeMb: run.fixed ? 4 * HELD_OF_MB : HELD_OF_MB }
  })
  worker.unref()
  /** @type {(() => void)[]} ends of jobs, by the worker's answers: its queue is bounded */
  const waiting = []
  // V8 aborts with a nearly full heap if it runs GCs most of the time. This happened when jobs had
  // piled up while the worker filled its heap, so jobs wait until the worker is ready.
  let isReady = false
  worker.once('message', () => {
    isReady = true
    worker.on('message', () => waiting.shift()?.())
  })
  withJobs(run, {
    perSecond: 450,
    job: (number) => new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
      if (!isReady) return resolve()
      waiting.push(resolve)
      worker.postMessage(number)
    })
  })
} else {
  const held = fillHeap(0.83, HELD_OF_MB * 2 ** 20)
  /** @type {object[][]} objects that live long enough to leave the new space */
  const recent = []
  parentPort?.on('message', (number) => {
    recent[number % 40] = Array.from({ length: 2000 }, (_, i) => ({
      number,
      i,
      of: held[(number * i) % held.length]
    }))
    parentPort?.postMessage(number)
  })
  setTimeout(() => parentPort?.postMessage('ready'), REST_MS)
}

'use strict'

// A worker thread that was given a heap of 96 MB and holds nearly as much: it spends its time collecting, while the main
// thread has nothing to do. `--fixed` gives it four times as much.
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

if (isMainThread) {
  const run = appRun({ work: 'jobs' })
  const worker = new Worker(__filename, { resourceLimits: { maxOldGenerationSizeMb: run.fixed ? 384 : 96 } })
  worker.unref()
  withJobs(run, { perSecond: 80, job: (number) => worker.postMessage(number) })
} else {
  /** @type {object[]} */
  const held = []
  while (held.length < 640_000) held.push({ id: held.length, pair: [held.length, held.length % 7], name: `held ${held.length % 1000}` })
  /** @type {object[][]} */
  const recent = []
  parentPort?.on('message', (number) => {
    recent[number % 10] = Array.from({ length: 1000 }, (_, i) => ({ number, i, of: held[(number * i) % held.length] }))
  })
}

'use strict'

// The worker thread of a thumbnail service keeps a histogram of every picture: the worker's heap
// grows, the main thread's does not. `--fixed` removes the oldest entries.
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const KEPT_WHEN_FIXED = 1000

if (isMainThread) {
  const run = appRun({ work: 'pictures' })
  const worker = new Worker(__filename, { workerData: { fixed: run.fixed } })
  worker.unref()
  withJobs(run, {
    perSecond: 400,
    job: number => worker.postMessage({ number, name: `picture-${number}.jpg` })
  })
} else {
  /** @type {Map<string, object>} */
  const seen = new Map()
  parentPort?.on('message', ({ number, name }) => {
    const histogram = Array.from({ length: 64 }, (_, i) => ({
      bin: i,
      count: (number * 7 + i) % 255,
      label: `${name}#${i}`
    }))
    seen.set(`${name}@${number}`, { name, histogram })
    if (workerData.fixed && seen.size > KEPT_WHEN_FIXED) {
      seen.delete(String(seen.keys().next().value))
    }
  })
}

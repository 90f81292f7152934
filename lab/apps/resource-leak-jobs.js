'use strict'

// A scheduler starts a progress timer for each job and never clears it. `--fixed` clears the timer
// when the job is done.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

let ticks = 0
const run = appRun({ work: 'jobs', figures: () => ({ ticks }) })

/** @param {number} number */
async function work (number) {
  const progress = setInterval(() => { ticks += number > 0 ? 1 : 0 }, 5000)
  const rows = Array.from({ length: 500 }, (_, i) => ({ i, number, text: `row ${i}` }))
  await wait(50)
  if (run.fixed) clearInterval(progress)
  return rows.length
}

withJobs(run, { perSecond: 8, job: work })

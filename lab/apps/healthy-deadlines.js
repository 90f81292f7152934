'use strict'

// A broker sets a deadline for each request: it sets and clears thousands of timers all the time,
// and their number is constant.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

let late = 0
const run = appRun({ work: 'orders', figures: () => ({ late }) })

/** @param {number} number */
async function order (number) {
  const deadlines = Array.from({ length: 10 }, () => setTimeout(() => { late++ }, 30_000))
  await new Promise((resolve) => setTimeout(resolve, 1500 + (number * 37) % 1000))
  for (const deadline of deadlines) clearTimeout(deadline)
}

withJobs(run, { perSecond: 120, job: order, atOnce: 1000 })

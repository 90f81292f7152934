'use strict'

// A job runner keeps every result "for the dashboard" and never trims the list. `--fixed` keeps the
// last 500 results.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const KEPT_WHEN_FIXED = 500
/** @type {{ job: number, steps: { name: string, ms: number, note: string }[] }[]} */
const results = []
const run = appRun({ work: 'jobs', figures: () => ({ results: results.length }) })

/** @param {number} job */
function work (job) {
  const steps = Array.from({ length: 30 }, (_, i) => ({
    name: `step ${i}`,
    ms: (job * 31 + i) % 250,
    note: `job ${job} step ${i} done`
  }))
  steps.sort((a, b) => a.ms - b.ms)
  results.push({ job, steps })
  if (run.fixed && results.length > KEPT_WHEN_FIXED) results.shift()
}

withJobs(run, { perSecond: 400, job: work })

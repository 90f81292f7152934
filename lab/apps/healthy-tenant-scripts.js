'use strict'

// A form builder runs each tenant's small script in a new vm context and drops the context: GCs
// free the contexts.
const vm = require('node:vm')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

let results = 0
const run = appRun({ work: 'scripts', figures: () => ({ results }) })

/** @param {number} number */
function runScript (number) {
  const rows = Array.from({ length: 300 }, (_, i) => ({ i, value: (number * i) % 17 }))
  const total = vm.runInNewContext('rows.reduce((sum, row) => sum + row.value, 0)', { rows })
  results += total > 0 ? 1 : 0
}

withJobs(run, { perSecond: 10, job: runScript })

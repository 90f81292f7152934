'use strict'

// A deploy bot calls execFileSync once a second for the status of a command: during the call the
// process uses no CPU and answers no request. `--fixed` calls execFile, which does not block.
const { execFile, execFileSync } = require('node:child_process')
const { promisify } = require('node:util')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const run = appRun({ work: 'checks' })
const args = ['-c', 'sleep 0.35']

withJobs(run, {
  perSecond: 1,
  job: async () =>
    run.fixed ? promisify(execFile)('/bin/sh', args) : execFileSync('/bin/sh', args),
  atOnce: 4
})

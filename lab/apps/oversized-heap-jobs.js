'use strict'

// A report worker runs on a large machine, with --max-old-space-size=4096 and large semi-spaces: it
// keeps a few megabytes, and hundreds of megabytes of garbage wait for rare, long GCs.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

/** @type {Map<number, object[]>} the newest 200 */
const reports = new Map()

/** @param {number} number */
function report (number) {
  const rows = Array.from({ length: 2500 }, (_, i) => ({
    number,
    i,
    text: `row ${i} of report ${number}`,
    cells: [i, i * 2, i * 3]
  }))
  rows.sort((a, b) => (a.i * 7919) % 997 - (b.i * 7919) % 997)
  reports.set(number, rows.slice(0, 60))
  reports.delete(number - 200)
}

withJobs(appRun({ work: 'reports' }), { perSecond: 150, job: report })

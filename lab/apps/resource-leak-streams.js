'use strict'

// A file server opens a file for each range request; its code for small ranges does not close the
// file. `--fixed` closes the file.
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const file = path.join(os.tmpdir(), `memwatch-lab-ranges-${process.pid}`)
fs.writeFileSync(file, 'x'.repeat(100_000))
const run = appRun({ work: 'ranges' })
run.onEnd(() => fs.rmSync(file, { force: true }))
const buffer = Buffer.alloc(4096)

/** @param {number} number */
function readRange (number) {
  const fd = fs.openSync(file, 'r')
  fs.readSync(fd, buffer, 0, 4096, (number * 37) % 90_000)
  if (run.fixed || number % 4 !== 0) fs.closeSync(fd)
}

withJobs(run, { perSecond: 20, job: readRange })

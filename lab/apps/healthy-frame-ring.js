'use strict'

// A recorder reuses a ring of eighty Buffers of a megabyte, created at the start: external memory
// is high, and constant.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const ring = Array.from({ length: 80 }, () => Buffer.allocUnsafeSlow(2 ** 20).fill(1))
const run = appRun({ work: 'frames' })

/** @param {number} number */
function record (number) {
  const frame = ring[number % ring.length]
  frame.fill(number % 255, 0, 2 ** 16)
  return Array.from({ length: 200 }, (_, i) => ({
    i,
    at: number,
    key: `frame ${number} mark ${i}`
  })).length
}

withJobs(run, { perSecond: 60, job: record })

'use strict'

// A deduplicator reads records, and keeps the ten-byte key of each record as a slice. Every key
// pins the slab that contains its record. `--fixed` keeps the key as a string.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

/** @type {Map<number, Buffer | string>} the newest 30,000 */
const keys = new Map()
const KEPT = 30_000
let record = 0
const run = appRun({ work: 'batches', figures: () => ({ keys: keys.size }) })

function readBatch () {
  for (let i = 0; i < 30; i++, record++) {
    const bytes = Buffer.from(`${String(record).padStart(10, '0')} ${'field '.repeat(500)}`)
    const key = bytes.subarray(0, 10)
    keys.set(record, run.fixed ? key.toString('latin1') : key)
    keys.delete(record - KEPT)
  }
}

withJobs(run, { perSecond: 25, job: readBatch })

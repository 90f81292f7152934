'use strict'

// A service signs five scans a second in a container of 300 MB, as in a published measurement. It
// reads each scan into a new Buffer of 50 MB. `--fixed` releases each Buffer after signing by
// ArrayBuffer.prototype.transfer(0); on a Node.js without this function it reuses one Buffer.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const SCAN_BYTES = 50 * 2 ** 20
const run = appRun({ figures: () => ({ signature }) })
const canTransfer = 'transfer' in ArrayBuffer.prototype
const kept = run.fixed && !canTransfer ? Buffer.allocUnsafeSlow(SCAN_BYTES) : null
let signature = 0

/** @param {number} number */
function sign (number) {
  const scan = kept ?? Buffer.allocUnsafeSlow(SCAN_BYTES)
  scan.fill(number % 255)
  for (let i = 0; i < SCAN_BYTES; i += 65_536) signature = (signature * 31 + scan[i]) % 1_000_003
  // The Buffer owns its memory: releasing it affects no other Buffer.
  if (run.fixed && canTransfer) /** @type {any} */ (scan.buffer).transfer(0)
}

withJobs(run, { perSecond: 5, job: sign })

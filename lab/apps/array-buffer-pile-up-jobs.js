'use strict'

// Twelve times a second, a video indexer reads a frame of 50 MB, samples its pixels and drops it.
// The frames are garbage at once, but V8 frees them late. `--fixed` reuses one Buffer for strips of
// the frame.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const FRAME_BYTES = 50 * 2 ** 20
const run = appRun({ work: 'frames', figures: () => ({ brightness: Math.round(brightness) }) })
const own = run.fixed ? Buffer.allocUnsafeSlow(FRAME_BYTES / 50) : null
let brightness = 0

/** @param {number} number */
function index (number) {
  const part = own ?? Buffer.allocUnsafeSlow(FRAME_BYTES)
  let sum = 0
  for (let done = 0; done < FRAME_BYTES; done += part.length) {
    part.fill(number % 255)
    for (let i = 0; i < part.length; i += 4096) sum += part[i]
  }
  brightness = sum / (FRAME_BYTES / 4096)
}

withJobs(run, { perSecond: 12, job: index })

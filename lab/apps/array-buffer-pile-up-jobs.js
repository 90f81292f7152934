'use strict'

// A video indexer: it takes a frame of 50 MB, looks at some pixels and drops it, six times a second. The frames are
// garbage at once, but wait for V8 to notice. `--fixed` keeps one frame Buffer and fills it again.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const FRAME_BYTES = 50 * 2 ** 20
const run = appRun({ work: 'frames', figures: () => ({ brightness: Math.round(brightness) }) })
const own = run.fixed ? Buffer.allocUnsafeSlow(FRAME_BYTES) : null
let brightness = 0

/** @param {number} number */
function index (number) {
  const frame = own ?? Buffer.allocUnsafeSlow(FRAME_BYTES)
  frame.fill(number % 255)
  let sum = 0
  for (let i = 0; i < frame.length; i += 4096) sum += frame[i]
  brightness = sum / (frame.length / 4096)
}

withJobs(run, { perSecond: 6, job: index })

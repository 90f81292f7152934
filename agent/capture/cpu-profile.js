'use strict'

const { CaptureError, textChunks } = require('./index')
const { NO_PROFILER, startCpuProfile } = require('./profilers')

/** Where the time of this thread goes, a look a millisecond. @type {import('./index').Capture} */
async function * cpuProfile ({ seconds }, { wait }) {
  const running = startCpuProfile()
  if (!running) throw new CaptureError('not_supported', NO_PROFILER)
  /** @type {string | undefined} */
  let profile
  try {
    await wait(seconds)
  } finally {
    // Whatever happens: a profiler that is left running costs for good.
    profile = running.stop()
  }
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { cpuProfile }

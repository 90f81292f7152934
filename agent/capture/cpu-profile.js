'use strict'

const { CaptureError, stopAfter, textChunks } = require('./parts')
const { NO_PROFILER, startCpuProfile } = require('./profilers')

/** CPU time of this thread. @type {import('./index').Capture} */
async function * cpuProfile ({ seconds, intervalMicroseconds }, { wait }) {
  const running = startCpuProfile(intervalMicroseconds)
  if (!running) throw new CaptureError('not_supported', NO_PROFILER)
  const profile = await stopAfter(running, () => wait(seconds))
  yield { part: 'profile', chunks: textChunks(profile) }
}

module.exports = { cpuProfile }

'use strict'

const { stringifyJson } = require('../primordials')
const { GCProfiler } = require('../v8-functions')
const { CaptureError, stopAfter, textChunks } = require('./parts')

/**
 * GCProfiler retains 3 KB for each GC until it is stopped, and stopping takes 25 µs for each GC.
 */
const MOST_GCS = 3000
const POLL_SECONDS = 0.25

/** Each GC with the space it freed, by GCProfiler. @type {import('./index').Capture} */
async function * gcTrace ({ seconds }, { wait, gcs }) {
  if (!GCProfiler) throw new CaptureError('not_supported', 'this Node has no GCProfiler')
  const profiler = new GCProfiler()
  profiler.start()
  const before = gcs()
  const trace = await stopAfter(profiler, async () => {
    for (let waited = 0; waited < seconds && gcs() - before < MOST_GCS; waited += POLL_SECONDS) {
      await wait(Math.min(POLL_SECONDS, seconds - waited))
    }
  })
  yield { part: 'trace', chunks: textChunks(stringifyJson(trace)) }
}

module.exports = { gcTrace }

'use strict'

const { stringifyJson } = require('../primordials')
const { GCProfiler } = require('../v8-functions')
const { CaptureError, stopAfter, textChunks, waitUnless } = require('./parts')

/**
 * GCProfiler retains 3 KB for each GC until it is stopped, and stopping takes 25 µs for each GC.
 */
const MOST_GCS = 3000

/** Each GC with the space it freed, by GCProfiler. @type {import('./index').Capture} */
async function * gcTrace ({ seconds }, { wait, gcs }) {
  if (!GCProfiler) throw new CaptureError('not_supported', 'this Node has no GCProfiler')
  const profiler = new GCProfiler()
  profiler.start()
  const before = gcs()
  const isOver = () => gcs() - before >= MOST_GCS
  const trace = await stopAfter(profiler, () => waitUnless(wait, seconds, isOver))
  yield { part: 'trace', chunks: textChunks(stringifyJson(trace)) }
}

module.exports = { gcTrace }

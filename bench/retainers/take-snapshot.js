'use strict'

// Preloaded into an app that another process started: writes a heap snapshot when asked.
process.on('message', (/** @type {string} */ file) => {
  require('node:v8').writeHeapSnapshot(file)
  process.send?.(file)
})

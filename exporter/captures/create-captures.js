'use strict'

const path = require('node:path')
const { Captures } = require('./captures')
const { CaptureStore } = require('./store')

/**
 * Loads the analysis of heap snapshots on first use.
 * @type {typeof import('./retainers').retainersOf}
 */
const retainersOf = (...of) => require('./retainers').retainersOf(...of)

/**
 * @param {import('../exporter').ExporterConfig} config
 * @param {import('../commands/commands').Commands} commands
 * @returns {Captures} captures of an exporter, which survive it in the folder of --data-dir
 */
function createCaptures ({ dataFolder, capturesMax, capturesKeep }, commands) {
  return new Captures({
    commands,
    store: CaptureStore.of({
      folder: dataFolder && path.join(dataFolder.path, 'captures'),
      quarantine: dataFolder?.quarantine,
      maxBytes: capturesMax,
      keepSeconds: capturesKeep
    }),
    // The reader of sources takes two megabytes, and most exporters never need it.
    suspectsOf: (...of) => require('./suspects').suspectsOf(...of),
    retainersOf
  })
}

module.exports = { createCaptures, retainersOf }

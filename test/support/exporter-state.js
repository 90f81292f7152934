'use strict'

/**
 * State of an exporter without any events.
 * @param {object} [changes]
 * @returns {import('../../exporter/catalog/exporter-metrics').ExporterState}
 */
const exporterState = changes => ({
  rejected: new Map(),
  frames: 0,
  framesShed: 0,
  loadLevel: 0,
  connections: 0,
  targets: 0,
  diagnosisErrors: 0,
  listenerErrors: 0,
  targetsOmitted: 0,
  version: '0.0.0',
  exits: [],
  deaths: [],
  silent: [],
  flight: { memoryBytes: 0, diskBytes: 0, saving: false, dropped: 0, torn: 0 },
  captures: { counts: new Map(), bytes: 0 },
  ...changes
})

module.exports = { exporterState }

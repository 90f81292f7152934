'use strict'

const { formatAddress } = require('../ingest/address')

/**
 * Creates the attacher, which is loaded only here, because most exporters never attach.
 * @param {import('../exporter').Exporter} exporter
 * @returns {import('./attacher').Attacher | undefined} undefined if no option allows the exporter
 *   to attach
 */
function createAttacher (exporter) {
  const { attachOnRequest, attachAnnotated, attachAgent, socket } = exporter.config
  if (!attachOnRequest && !attachAnnotated) return undefined
  const { Attacher } = require('./attacher')
  return new Attacher({
    targets: () => exporter.targets,
    socket: formatAddress(socket),
    folder: attachAgent || undefined
  })
}

module.exports = { createAttacher }

'use strict'

const { formatAddress } = require('../ingest/address')

/**
 * Most exporters attach to nothing, and never load the attacher.
 * @param {import('../exporter').Exporter} exporter
 * @returns {import('./attacher').Attacher | undefined} undefined: no option allows it to attach
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

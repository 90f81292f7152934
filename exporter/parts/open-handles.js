'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/** Diagnosis whose finding lists the open handles of the process. */
const EXPLAINED = 'resource-leak'

/**
 * Adds the open handles to a leak of handles: descriptors by path or peer, threads by name. It
 * reads them from /proc when the leak is suspected and when it is confirmed.
 */
class OpenHandlesPart {
  name = 'open handles'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { diagnosis, state }) => {
      if (diagnosis !== EXPLAINED) return
      const isFound = state === 'suspected' || state === 'confirmed'
      if (!isFound) findCase(target).openHandles = null
      // An overloaded exporter reads nothing more.
      if (!isFound || exporter.load.level > 0) return
      const { readOpenHandles } = require('../process/open-handles')
      findCase(target).openHandles = readOpenHandles(target.hello)
    })
  }
}

module.exports = { OpenHandlesPart }

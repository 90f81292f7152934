'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/** The diagnosis whose finding is explained by what the process holds open. */
const EXPLAINED = 'resource-leak'

/**
 * Puts beside a leak of handles what they are: descriptors by path or peer, threads by name, read
 * from /proc when the leak is suspected and when it is confirmed.
 */
class OpenHandlesPart {
  name = 'open handles'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { diagnosis, state }) => {
      if (diagnosis !== EXPLAINED) return
      const isFound = state === 'suspected' || state === 'confirmed'
      if (!isFound) findCase(target).openHandles = null
      // An exporter that has too much to do reads nothing more.
      if (!isFound || exporter.load.level > 0) return
      const { readOpenHandles } = require('../process/open-handles')
      findCase(target).openHandles = readOpenHandles(target.hello)
    })
  }
}

module.exports = { OpenHandlesPart }

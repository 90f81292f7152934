'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/** @typedef {import('@memwatch/engine/history/target').Target} Target */

/**
 * Details by the diagnosis that they explain. Each reader is loaded with its first finding: most
 * exporters never need one.
 * @type {Readonly<Record<string, (target: Target) => void>>}
 */
const readers = Object.freeze({
  'resource-leak': target => {
    const { readOpenHandles } = require('../process/open-handles')
    findCase(target).openHandles = readOpenHandles(target.hello)
  },
  'native-memory-leak': target => {
    // Without such memory no addon has a malloc of its own.
    if (!target.scan?.addonMallocBytes) return
    const { readMallocAddons } = require('../captures/installed-packages')
    findCase(target).mallocAddons = readMallocAddons(target.hello)
  }
})

/**
 * Reads details of a process from /proc when a verdict is suspected, and again when it is
 * confirmed: the open handles of a leak of handles, and the addons with a malloc of their own.
 */
class ProcessDetailsPart {
  name = 'process details'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { diagnosis, state }) => {
      const isFound = state === 'suspected' || state === 'confirmed'
      // An overloaded exporter reads nothing more.
      if (isFound && exporter.load.level === 0) readers[diagnosis]?.(target)
    })
  }
}

module.exports = { ProcessDetailsPart }

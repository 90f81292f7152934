'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/** @typedef {import('@memwatch/engine/history/target').Target} Target */

/**
 * Readers of process details, by the diagnosis that the details explain. Each reader is loaded with
 * the first finding, because most exporters never need it.
 * @type {Readonly<Record<string, (target: Target) => void>>}
 */
const readers = Object.freeze({
  'resource-leak': target => {
    const { readOpenHandles } = require('../process/open-handles')
    findCase(target).openHandles = readOpenHandles(target.hello)
  },
  'native-memory-leak': target => {
    // If no memory belongs to an addon's malloc, no addon has a malloc of its own.
    if (!target.scan?.addonMallocBytes) return
    const { readMallocAddons } = require('../captures/installed-packages')
    findCase(target).mallocAddons = readMallocAddons(target.hello)
  }
})

/**
 * Reads details of a process from /proc when a verdict is suspected, and again when it is
 * confirmed: the open handles for a leak of handles, and addons with a malloc of their own for a
 * leak of native memory.
 */
class ProcessDetailsPart {
  name = 'process details'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { diagnosis, state }) => {
      const isFound = state === 'suspected' || state === 'confirmed'
      // An overloaded exporter reads no details.
      if (isFound && exporter.load.level === 0) readers[diagnosis]?.(target)
    })
  }
}

module.exports = { ProcessDetailsPart }

'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/** The diagnosis that may be about the memory of an addon. */
const EXPLAINED = 'native-memory-leak'

/**
 * Reads which loaded addons bring their own malloc, while memory outside the heap grows: the
 * verdict names them.
 */
class AddonsPart {
  name = 'addons'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { diagnosis, state }) => {
      if (diagnosis !== EXPLAINED) return
      const isFound = state === 'suspected' || state === 'confirmed'
      if (!isFound) findCase(target).mallocAddons = null
      // Without such memory there is no such addon. An exporter with too much to do reads no files.
      if (!isFound || !target.scan?.addonMallocBytes || exporter.load.level > 0) return
      const { readMallocAddons } = require('../captures/installed-packages')
      findCase(target).mallocAddons = readMallocAddons(target.hello)
    })
  }
}

module.exports = { AddonsPart }

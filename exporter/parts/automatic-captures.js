'use strict'

const { AutomaticCaptures } = require('../captures/automatic')

/** Profiles a target when a leak or a blocked event loop is first suspected: --auto-captures. */
class AutomaticCapturesPart {
  name = 'automatic captures'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    if (exporter.config.autoCaptures === false) return
    const automatic = new AutomaticCaptures(exporter.captures)
    exporter.on('verdict', (target, verdict) => {
      // An exporter that has too much to do asks for nothing more.
      if (exporter.load.level === 0) automatic.changed(target, verdict)
    })
  }
}

module.exports = { AutomaticCapturesPart }

'use strict'

const { AutomaticCaptures } = require('../captures/automatic')

/** Captures targets by the rules of --capture-rules, unless --auto-captures is off. */
class AutomaticCapturesPart {
  name = 'automatic captures'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { autoCaptures, captureRules } = exporter.config
    if (autoCaptures === false) return
    const automatic = new AutomaticCaptures(exporter.captures, { rules: captureRules })
    // An overloaded exporter requests no captures.
    const isFree = () => exporter.load.level === 0
    exporter.on('verdict', (target, verdict) => { if (isFree()) automatic.changed(target, verdict) })
    exporter.on('frame', target => { if (isFree()) automatic.seen(target) })
    exporter.on('death', (death, target) => automatic.died(death, target))
  }
}

module.exports = { AutomaticCapturesPart }

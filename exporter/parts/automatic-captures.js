'use strict'

const { attachError } = require('../captures/attach')
const { lazily } = require('../lazily')

/** Captures targets by the rules of --capture-rules, unless --auto-captures is off. */
class AutomaticCapturesPart {
  name = 'automatic captures'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { autoCaptures, captureRules } = exporter.config
    if (autoCaptures === false) return
    /** @type {WeakSet<object>} */
    const told = new WeakSet()
    const automatic = lazily(() => {
      const { AutomaticCaptures } = require('../captures/automatic')
      return new AutomaticCaptures(exporter.captures, {
        rules: captureRules,
        isFree: () => exporter.load.level === 0,
        targets: () => exporter.targets,
        onRefused (target, { message }, diagnosis) {
          if (diagnosis) attachError(target, diagnosis, message)
          if (told.has(target)) return
          told.add(target)
          exporter.log.warn({ target: target.name, diagnosis }, `no capture: ${message}`)
        }
      })
    })
    exporter.on('verdict', (target, verdict) => automatic().changed(target, verdict))
    exporter.on('frame', target => automatic().seen(target))
    exporter.on('death', (death, target) => automatic().died(death, target))
  }
}

module.exports = { AutomaticCapturesPart }

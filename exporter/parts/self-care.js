'use strict'

const { MEASURE_EVERY_MS } = require('../self-care/load')

/**
 * Removes expired targets and captures, and measures the exporter's own load. Emits `load` when the
 * load shedding level changed.
 */
class SelfCarePart {
  name = 'self-care'
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { captures, load, targetRegistry } = exporter
    this.#timer = setInterval(() => {
      targetRegistry.expire()
      captures.tidy()
      if (load.measure()) exporter.emit('load')
    }, MEASURE_EVERY_MS).unref()
  }

  stop () {
    clearInterval(this.#timer)
  }
}

module.exports = { SelfCarePart }

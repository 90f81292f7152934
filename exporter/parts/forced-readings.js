'use strict'

const { lazily } = require('../lazily')

/** Requests full GCs if a leak check lacks readings and the app allows them. */
class ForcedReadingsPart {
  name = 'forced readings'

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const readings = lazily(() => {
      const { ForcedReadings } = require('../commands/forced-readings')
      return new ForcedReadings(exporter.commands)
    })
    exporter.on('frame', target => {
      // An overloaded exporter requests no GCs.
      if (exporter.load.level > 0) return
      readings().seen(target)?.catch(error => exporter.log.error(error, 'full GC not requested'))
    })
  }
}

module.exports = { ForcedReadingsPart }

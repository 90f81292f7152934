'use strict'

const { FlightRecorder } = require('../flight/flight-recorder')

/** @type {import('../catalog/exporter-metrics').ExporterState['flight']} */
const NOTHING_KEPT = Object.freeze({
  memoryBytes: 0, diskBytes: 0, saving: false, dropped: 0, torn: 0
})

/**
 * Stores the history of every target over hours and days, and all deaths. With --data-dir it stores
 * them on disk.
 */
class FlightPart {
  name = 'flight'
  /** @type {FlightRecorder | undefined} */
  #recorder

  get state () {
    return { flight: this.#recorder?.state ?? NOTHING_KEPT }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { config: { dataFolder, dataMax }, deathRegistry, followUps, load, log } = exporter
    const recorder = this.#recorder = new FlightRecorder({
      targets: exporter.targetRegistry,
      folder: dataFolder?.path,
      quarantine: dataFolder?.quarantine,
      hold: async () => dataFolder?.hold(),
      maxBytes: dataMax,
      memoryBytes: () => load.now.historyBytes,
      onFailure: failure => failure
        ? log.error(failure, `cannot save to ${dataFolder?.path}: history stays in memory only`)
        : log.info(`saving to ${dataFolder?.path} again`)
    })
    // No content of the data folder may prevent the start of the exporter.
    try {
      recorder.restore(deathRegistry, followUps)
    } catch (error) {
      log.error(error, 'saved history not restored')
    }
    exporter.on('death', (death, target, lastMinutes) => recorder.death(death, lastMinutes, target))
    exporter.on('holders', (_, death) => {
      if (death) recorder.explain(death.id, death.holders)
    })
    exporter.on('alive', id => recorder.retract(id))
    exporter.on('advised', advice => recorder.advised(advice))
    exporter.on('followed', (_, followUp) => recorder.followed(followUp))
    exporter.on('end', target => recorder.ended(target))
    recorder.start()
  }

  /** Saves a last time. */
  async stop () {
    await this.#recorder?.stop()
  }
}

module.exports = { FlightPart }

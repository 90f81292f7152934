'use strict'

/** Sends finished captures to the folder or storage of --ship-to. */
class EgressPart {
  name = 'egress'
  /** @type {import('../egress/shipper').Shipper | undefined} */
  #shipper

  get state () {
    if (!this.#shipper) return {}
    const { counts, waiting, bytes } = this.#shipper
    return { egress: { counts, waiting, bytes } }
  }

  /**
   * @param {import('../exporter').Exporter} exporter
   * @throws {import('../config-error').ConfigError} if the address or its credentials cannot be
   *   used
   */
  start (exporter) {
    const { captures, config, log } = exporter
    if (!config.shipTo) return
    const { openDestination } = require('../egress/destination')
    const { Shipper } = require('../egress/shipper')
    const shipper = this.#shipper = new Shipper({
      captures,
      send: openDestination(config),
      shipsSnapshots: config.shipSnapshots,
      onFailure: (message, fields) => log.warn(fields, `--ship-to: ${message}`)
    })
    // An earlier exporter may have stored captures that it did not send.
    for (const capture of captures.all.toReversed()) shipper.add(capture)
    exporter.on('captured', capture => shipper.add(capture))
  }

  async stop () {
    await this.#shipper?.stop()
  }
}

module.exports = { EgressPart }

'use strict'

const { ConfigError } = require('../config-error')

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
   * @throws {ConfigError} when the address or its credentials cannot be used
   */
  start (exporter) {
    const { captures, config, log } = exporter
    if (!config.shipTo) return
    const { Shipper } = require('../egress/shipper')
    const shipper = this.#shipper = new Shipper({
      captures,
      send: openDestination(config),
      shipsSnapshots: config.shipSnapshots,
      onFailure: (message, fields) => log.warn(fields, `--ship-to: ${message}`)
    })
    // An earlier exporter may have stored some that it did not send.
    for (const capture of captures.all.toReversed()) shipper.add(capture)
    exporter.on('captured', capture => shipper.add(capture))
  }

  async stop () {
    await this.#shipper?.stop()
  }
}

/**
 * @param {import('../exporter').ExporterConfig} config
 * @returns {import('../egress/send').Send}
 * @throws {ConfigError}
 */
function openDestination ({ shipTo = '', s3Endpoint, s3Region, shipHttp, shipCredentials }) {
  const { parseDestination } = require('../egress/addresses')
  const { createSend } = require('../egress/send')
  try {
    const options = { endpoint: s3Endpoint, region: s3Region, allowHttp: shipHttp }
    return createSend(parseDestination(shipTo, options), { credentialsFile: shipCredentials })
  } catch (error) {
    throw new ConfigError(`--ship-to: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { EgressPart }

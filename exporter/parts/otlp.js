'use strict'

const { unusedEndpoint } = require('../otlp/address')

/** Sends metrics, verdicts and deaths to the receiver of --otlp. */
class OtlpPart {
  name = 'otlp'
  /** @type {import('../otlp/otlp').Otlp | undefined} */
  #otlp

  get state () {
    return { otlp: this.#otlp?.counts }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { config, log } = exporter
    if (!config.otlp) {
      const unused = config.otlp !== undefined && unusedEndpoint(process.env)
      if (unused) log.info(`${unused} is ignored: it needs --otlp env`)
      return
    }
    // OpenTelemetry's packages take five megabytes, and are loaded only with --otlp.
    const { Otlp } = require('../otlp/otlp')
    const source = { targets: () => exporter.targets, state: () => exporter.state }
    const otlp = this.#otlp = new Otlp({ to: config.otlp, source, log })
    exporter.on('frame', target => otlp.framed(target))
    exporter.on('verdict', (target, verdict) => otlp.changed(target, verdict))
    exporter.on('death', (death, target) => otlp.died(target, death))
    exporter.on('followed', (target, followUp) => otlp.followed(target, followUp))
    exporter.on('end', target => otlp.ended(target))
    otlp.start()
  }

  async stop () {
    await this.#otlp?.stop()
  }
}

module.exports = { OtlpPart }

'use strict'

const { createServer } = require('../expose/server')

/** Serves /metrics, the API and the page. Emits `omitted` (target, error), once for each target. */
class HttpPart {
  name = 'http'
  option = '--listen'
  /** @type {import('../exporter').Exporter | undefined} */
  #exporter
  /** @type {ReturnType<typeof createServer> | undefined} */
  #server
  /** @type {WeakSet<import('@memwatch/engine/history/target').Target>} */
  #omitted = new WeakSet()
  #targetsOmitted = 0

  get state () {
    return { targetsOmitted: this.#targetsOmitted }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    this.#exporter = exporter
    this.#server = createServer(exporter, {
      omit: (target, error) => {
        if (this.#omitted.has(target)) return
        this.#omitted.add(target)
        this.#targetsOmitted++
        exporter.emit('omitted', target, error)
      }
    })
  }

  /** @returns {Promise<{ listen: { host: string, port: number } }>} */
  async open () {
    const { config } = /** @type {import('../exporter').Exporter} */ (this.#exporter)
    const server = /** @type {ReturnType<typeof createServer>} */ (this.#server)
    await server.listen({ host: config.listen.host, port: config.listen.port })
    const bound = /** @type {import('node:net').AddressInfo} */ (server.server.address())
    return { listen: { host: bound.address, port: bound.port } }
  }

  async stop () {
    await this.#server?.close()
  }
}

module.exports = { HttpPart }

'use strict'

/**
 * A preload that serves prom-client's default metrics beside an app, and writes its port to the
 * file METRICS_PORT_FILE.
 */

const fs = require('node:fs')
const http = require('node:http')
const { collectDefaultMetrics, register } = require('prom-client')

collectDefaultMetrics()
const server = http.createServer(async (request, response) =>
  response.end(await register.metrics())
)
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  fs.writeFileSync(String(process.env.METRICS_PORT_FILE), String(port))
})
server.unref()

'use strict'

const net = require('node:net')
const { once } = require('node:events')

/**
 * Finds a port for a server that does not report its own choice.
 * @returns {Promise<number>} a currently free port of the loopback interface
 */
async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

module.exports = { freePort }

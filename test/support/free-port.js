'use strict'

const net = require('node:net')
const { once } = require('node:events')

/**
 * For a server that does not say which port it chose.
 * @returns {Promise<number>} a port of the loopback interface that is free now
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

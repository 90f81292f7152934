'use strict'

const net = require('node:net')
const { once } = require('node:events')

/**
 * Ports below those that the kernel gives to connections (ip_local_port_range): none of these takes
 * the port before its server starts.
 */
const FIRST_PORT = 12_000
const LAST_PORT = 32_000

/**
 * Finds a port for a server that does not report its own choice.
 * @returns {Promise<number>} a currently free port of the loopback interface
 */
async function freePort () {
  const port = FIRST_PORT + Math.floor((LAST_PORT - FIRST_PORT) * Math.random())
  const server = net.createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EADDRINUSE') return freePort()
    throw error
  }
  server.close()
  await once(server, 'close')
  return port
}

module.exports = { freePort }

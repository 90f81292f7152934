'use strict'

const net = require('node:net')
const { fork } = require('node:child_process')
const { once } = require('node:events')

/**
 * Starts a backend that answers each message with "pong". It has a process of its own, without an
 * agent, as the backends of real services do: the app has only its own ends of the connections. It
 * ends with the app, whose end closes its channel.
 * @param {import('./app-run').AppRun} run
 * @returns {Promise<number>} its port on 127.0.0.1
 */
async function startBackend (run) {
  const { NODE_OPTIONS, ...env } = process.env
  const child = fork(__filename, { execArgv: [], env: { ...env, MEMWATCH_DISABLED: '1' } })
  run.onEnd(() => { child.kill() })
  const [port] = await once(child, 'message')
  return port
}

function serve () {
  const server = net.createServer(socket => {
    socket.on('error', () => {}).on('data', () => socket.write('pong'))
  })
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {net.AddressInfo} */ (server.address())
    process.send?.(port)
  })
  process.on('disconnect', () => process.exit(0))
  // Ctrl-C reaches all processes of the terminal; the app decides when this process ends.
  process.on('SIGINT', () => {})
}

if (require.main === module) serve()

module.exports = { startBackend }

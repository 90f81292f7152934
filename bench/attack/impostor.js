'use strict'

// A hostile exporter: `node impostor.js SOCKET BEHAVIOUR`. It ends with its parent.
const net = require('node:net')

const [socketPath, behaviour] = process.argv.slice(2)
const command = (/** @type {string} */ name, args = {}) =>
  JSON.stringify({
    v: 1,
    type: 'command',
    id: String(Math.random()),
    command: name,
    args,
    proof: 'a'.repeat(64)
  }) + '\n'
const MIB = 2 ** 20

/**
 * Sends until the peer stops reading.
 * @param {net.Socket} socket
 * @param {() => string | Buffer} next
 */
function pour (socket, next) {
  const more = () => {
    while (!socket.destroyed && socket.write(next()));
  }
  socket.on('drain', more)
  more()
}

/** @type {Record<string, (socket: net.Socket) => void>} */
const BEHAVIOURS = {
  silent () {},
  'empty lines': socket => pour(socket, () => Buffer.alloc(65_536, '\n')),
  'scan commands': socket => pour(socket, () => command('look').repeat(100)),
  'capture commands': socket =>
    pour(socket, () => command('capture', { kind: 'heap_snapshot' }).repeat(100)),
  'nested JSON': socket => pour(socket, () => `${'[['.repeat(500)}${']]'.repeat(500)}\n`.repeat(20)),
  'one endless line': socket => pour(socket, () => Buffer.alloc(MIB, 'x')),
  'random bytes': socket =>
    pour(socket, () =>
      Buffer.from(Array.from({ length: 65_536 }, () => Math.floor(256 * Math.random())))
    ),
  'one byte at a time': socket => {
    const timer = setInterval(() => socket.write('{'), 1)
    socket.on('close', () => clearInterval(timer))
  },
  'closes at once': socket => {
    socket.destroy()
  },
  'never reads' (socket) {
    socket.pause()
  }
}

const server = net.createServer(socket => {
  socket.on('error', () => {})
  if (behaviour !== 'never reads') socket.resume()
  BEHAVIOURS[behaviour](socket)
})
server.listen(socketPath, () => process.send?.('listening'))
process.on('disconnect', () => process.exit())

'use strict'

const fs = require('node:fs')
const net = require('node:net')
const { randomBytes } = require('node:crypto')

/**
 * A process that listens on the exporter's address, and sends invalid messages. Its loops end by
 * themselves: with the connection, after MOST_BYTES, or after MOST_MS.
 *
 *   node impostor-process.js SOCKET ATTACK
 *
 * It prints `listening`, and `connected` for each agent.
 */
const MOST_MS = 6000
const MOST_BYTES = 2 ** 30
const PIECE_BYTES = 65_536

/** @param {object} [changes] */
const command = changes =>
  JSON.stringify({ v: 1, type: 'command', id: 'x', command: 'look', ...changes }) + '\n'
const capture = { command: 'capture', args: { kind: 'report', seconds: 0 } }
/** @param {string} line */
const burst = line => Buffer.from(line.repeat(Math.ceil(PIECE_BYTES / line.length)))

/** Data that each attack sends repeatedly. @type {Record<string, Buffer | undefined>} */
const ATTACKS = {
  silence: undefined,
  newlines: burst('\n'),
  looks: burst(command()),
  captures: burst(command(capture)),
  'trusted looks': burst(command()),
  'one endless line': Buffer.alloc(PIECE_BYTES, 'x'),
  'lines just below the limit': burst(`${'x'.repeat(4095)}\n`),
  'random bytes': randomBytes(PIECE_BYTES),
  prototypes: burst(command().replace('}', ',"__proto__":{"id":1},"command":"__proto__"}')),
  'a byte at a time': Buffer.from('x'),
  'a reset after each hello': undefined
}

/**
 * @param {net.Socket} socket
 * @param {Buffer} piece
 * @param {number} endMs
 */
function flood (socket, piece, endMs) {
  let bytes = 0
  const more = () => {
    if (socket.destroyed || bytes > MOST_BYTES || Date.now() > endMs) return
    bytes += piece.length
    const isTaken = socket.write(piece)
    if (isTaken) setImmediate(more)
    else socket.once('drain', more)
  }
  more()
}

function main () {
  const [, , path, attack] = process.argv
  const endMs = Date.now() + MOST_MS
  const server = net.createServer(socket => {
    console.log('connected')
    socket.on('error', () => {})
    socket.on('data', () => {
      if (attack === 'a reset after each hello') socket.destroy()
    })
    const piece = ATTACKS[attack]
    if (piece) flood(socket, piece, endMs)
  })
  server.listen(path, () => {
    fs.chmodSync(path, 0o777)
    console.log('listening')
  })
  setTimeout(() => process.exit(), MOST_MS + 10_000)
}

module.exports = { attacks: Object.keys(ATTACKS) }
if (require.main === module) main()

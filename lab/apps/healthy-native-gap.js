'use strict'

// A chat relay with one compression stream for each open connection, as WebSocket permessage-deflate has. The streams'
// windows live outside V8: about 150 MB that are neither heap nor Buffers, and all of it in use, all the time.
const zlib = require('node:zlib')
const { appRun } = require('../app-run')

const CONNECTIONS = 420
const MESSAGE_EVERY_MS = 10

/** @type {import('node:zlib').DeflateRaw[]} */
const connections = []
let turn = 0
let sentBytes = 0

const run = appRun({ work: 'messages', figures: () => ({ connections: connections.length, sentBytes }) })

function connect () {
  const stream = zlib.createDeflateRaw({ windowBits: 15, memLevel: 9, chunkSize: 1024 })
  stream.on('data', (chunk) => { sentBytes += chunk.length })
  stream.on('error', () => {})
  connections.push(stream)
  // A first conversation: it fills the window, so every page of it is really resident.
  for (let i = 0; i < 10; i++) stream.write(message(12_000))
  stream.flush()
}

/** @param {number} length */
function message (length) {
  return JSON.stringify({ from: `user ${turn}`, text: Array.from({ length: length / 12 }, () => Math.random().toString(36).slice(2, 13)).join(' ') })
}

setInterval(() => {
  if (connections.length < CONNECTIONS) return connect()
  const stream = connections[turn++ % connections.length]
  stream.write(message(400))
  stream.flush(() => run.served())
}, MESSAGE_EVERY_MS)

'use strict'

// A chat relay has one compression stream for each open connection, like WebSocket
// permessage-deflate. The windows of the streams are outside V8: about 150 MB that are neither heap
// nor Buffers. All of this memory is always in use.
const zlib = require('node:zlib')
const { appRun } = require('../app-run')

const CONNECTIONS = 240
const HISTORY = 2000
const MESSAGE_EVERY_MS = 5

/** @typedef {{ from: string, at: number, words: string[] }} Message */

/** @type {import('node:zlib').DeflateRaw[]} */
const connections = []
/** @type {Message[]} the last messages, a ring */
const history = []
let turn = 0
let sentBytes = 0

const run = appRun({
  work: 'messages',
  figures: () => ({ connections: connections.length, sentBytes })
})

function connect () {
  const stream = zlib.createDeflateRaw({ windowBits: 15, memLevel: 9, chunkSize: 1024 })
  stream.on('data', (chunk) => { sentBytes += chunk.length })
  connections.push(stream)
  // A first conversation: it fills the window, so every page of it is really resident.
  for (let i = 0; i < 10; i++) stream.write(JSON.stringify(message(1000)))
  stream.flush()
}

/**
 * @param {number} length words
 * @returns {Message}
 */
function message (length) {
  return {
    from: `user ${turn}`,
    at: Date.now(),
    words: Array.from({ length }, () => Math.random().toString(36).slice(2, 13))
  }
}

setInterval(() => {
  if (connections.length < CONNECTIONS) return connect()
  const stream = connections[turn++ % connections.length]
  const sent = message(60)
  history[turn % HISTORY] = sent
  stream.write(JSON.stringify(sent))
  stream.flush(() => run.served())
}, MESSAGE_EVERY_MS)

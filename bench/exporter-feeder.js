'use strict'

// Agents for bench/exporter.js: `node exporter-feeder.js SOCKET TARGETS SECONDS RATE`. It sends
// real frames of a recording for each target, with an identity of its own and continued counters.
// RATE: frames a second for each target. 0 sends as fast as the exporter accepts, and opens a new
// connection from time to time, because the exporter limits the frames of one connection.
const net = require('node:net')
const { once } = require('node:events')
const { repeatRecording } = require('./repeated-recording')

const [socketPath, targets, seconds, rate] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const { hello, frameOf } = repeatRecording('20-healthy-steady-broken.ndjson.gz')
const AT_ONCE = 250

/** The exporter's queue of connections may be full for a moment. @returns {Promise<net.Socket>} */
async function connected () {
  for (;;) {
    const socket = net.connect(socketPath)
    try {
      await once(socket, 'connect')
      return socket.on('error', error => { throw error })
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
}

/** @param {number} i number of the target */
async function open (i) {
  const socket = await connected()
  socket.write(
    JSON.stringify({
      ...hello,
      pid: 100_000 + i,
      name: `app-${i}`,
      startedAtUnixMs: hello.startedAtUnixMs + i
    }) + '\n'
  )
  return socket
}

/** @param {net.Socket} socket */
async function close (socket) {
  socket.resume().end()
  await once(socket, 'close')
}

async function main () {
  /** @type {net.Socket[]} */
  let sockets = []
  for (let i = 0; i < targets; i++) sockets.push(await open(i))
  process.send?.('connected')
  for (let n = 0; n < seconds; n++) {
    if (rate === 0 && n % AT_ONCE === AT_ONCE - 1) {
      await Promise.all(sockets.map(close))
      sockets = await Promise.all(sockets.map((_, i) => open(i)))
    }
    const began = performance.now()
    const line = JSON.stringify(frameOf(n)) + '\n'
    // Frames are spread over the second, like frames of real agents.
    const slices = rate > 0 ? 20 : 1
    for (let slice = 0; slice < slices; slice++) {
      for (let i = slice; i < sockets.length; i += slices) {
        if (!sockets[i].write(line) && rate === 0) await once(sockets[i], 'drain')
      }
      if (rate > 0) {
        await new Promise(resolve =>
          setTimeout(
            resolve,
            Math.max(0, began + (((slice + 1) / slices) * 1000) / rate - performance.now())
          )
        )
      }
    }
  }
  process.send?.('done')
}

process.on('message', () => process.exit())
main()

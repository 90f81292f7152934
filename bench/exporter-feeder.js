'use strict'

// Agents for bench/exporter.js: `node exporter-feeder.js SOCKET TARGETS SECONDS RATE`. It sends
// real frames of a recording for each target, with an identity of its own and continued counters.
// RATE: frames a second for each target; 0 sends as fast as the exporter accepts, on a new
// connection from time to time, as the frames of one connection are limited.
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { once } = require('node:events')
const { gunzipSync } = require('node:zlib')
const { fields } = require('../agent/protocol/frame')

const [socketPath, targets, seconds, rate] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const RECORDING = path.join(__dirname, '../test/recordings/20-healthy-steady-broken.ndjson.gz')
const lines = gunzipSync(fs.readFileSync(RECORDING))
  .toString()
  .trim()
  .split('\n')
  .map(text => JSON.parse(text).line)
  .filter(Boolean)
const hello = lines.find(({ type }) => type === 'hello')
const frames = lines.filter(({ type }) => type === 'frame').slice(3)
const AT_ONCE = 250
const counters = Object.entries(fields)
  .filter(([, { kind, shape }]) => kind === 'counter' && shape === 'number')
  .map(([name]) => name)

/** @param {number} n number of the frame, from 0; frames repeat with continued counters */
function frameOf (n) {
  const { values } = frames[n % frames.length]
  const rounds = Math.floor(n / frames.length)
  const last = frames[frames.length - 1].values
  const carried = { ...values }
  if (rounds > 0) {
    for (const name of counters) {
      if (values[name] !== undefined && last[name] !== undefined) {
        carried[name] = values[name] + rounds * last[name]
      }
    }
  }
  return (
    JSON.stringify({
      v: 1,
      type: 'frame',
      sequence: n + 1,
      atUnixMs: Date.now(),
      uptimeSeconds: n + 1,
      values: carried
    }) + '\n'
  )
}

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
    const line = frameOf(n)
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

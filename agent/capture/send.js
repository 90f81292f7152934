'use strict'

const net = require('node:net')
const { Promise, clearTimeout, nowMs, setTimeout, stringifyJson } = require('../primordials')
const { PROTOCOL_VERSION } = require('../protocol/frame')
const { LostDescriptor, findDescriptor } = require('../own-descriptor')

const CONNECT_WITHIN_MS = 500
/** Longest wait for an exporter that accepts nothing. */
const STALLED_MS = 30_000
/** Delay before a retry on a full socket, whose buffer holds a few hundred kilobytes. */
const AGAIN_MS = 2
/** Longest work before the app gets a turn of the event loop. */
const TURN_MS = 5
const SLICE_BYTES = 65_536

/**
 * Sends bytes at the exporter's pace, and reads the source no faster. It writes straight to the
 * descriptor: a pending write of libuv would keep the process alive.
 *
 * @param {object} options
 * @param {{ path: string }} options.address
 * @param {{ id: string, part: string }} options.header
 * @param {Iterable<Buffer> | AsyncIterable<Buffer>} options.chunks
 * @returns {Promise<number>} bytes sent, without the header
 * @throws {Error} the exporter is gone, or stalls
 */
async function send ({ address, header, chunks }) {
  const socket = await connected(address)
  const own = findDescriptor(socket)
  try {
    const write = createWriter(socket, own)
    await write(
      Buffer.from(stringifyJson({ v: PROTOCOL_VERSION, type: 'capture', ...header }) + '\n')
    )
    let bytes = 0
    for await (const chunk of chunks) {
      await write(chunk)
      bytes += chunk.length
    }
    if (own && !own.isOwn()) throw new LostDescriptor()
    socket.end()
    return bytes
  } catch (error) {
    // The app may have closed the descriptor, and another file may own its number.
    if (!own || own.isOwn()) socket.destroy()
    throw error
  }
}

/**
 * @param {{ path: string }} address
 * @returns {Promise<net.Socket>}
 */
function connected (address) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(address).unref()
    const giveUp = setTimeout(
      () => socket.destroy(new Error('no exporter answers')),
      CONNECT_WITHIN_MS
    )
    socket.on('error', reject)
    socket.once('connect', () => {
      clearTimeout(giveUp)
      // An exporter sends nothing here. Reading what another peer sends would cost the app time.
      socket.on('data', () => socket.destroy(new Error('the exporter answers a capture')))
      resolve(socket)
    })
  })
}

/**
 * @param {net.Socket} socket
 * @param {import('../own-descriptor').OwnDescriptor | undefined} own its descriptor
 * @returns {(bytes: Buffer) => Promise<void>}
 */
function createWriter (socket, own) {
  let turnBeganMs = nowMs()
  const turn = async (/** @type {number} */ ms) => {
    await new Promise(resolve => { setTimeout(() => resolve(undefined), ms) })
    turnBeganMs = nowMs()
  }
  return async bytes => {
    let tookMs = nowMs()
    for (let written = 0; written < bytes.length;) {
      if (socket.destroyed) throw new Error('the exporter hung up')
      try {
        written += own
          ? own.write(bytes, written, Math.min(SLICE_BYTES, bytes.length - written))
          : await writeByStream(socket, bytes)
        tookMs = nowMs()
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error
        if (nowMs() - tookMs > STALLED_MS) throw new Error('the exporter accepts no more')
        await turn(AGAIN_MS)
      }
      if (nowMs() - turnBeganMs > TURN_MS) await turn(0)
    }
  }
}

/**
 * Writes by the stream, for sockets without a descriptor (Windows pipes).
 * @param {net.Socket} socket
 * @param {Buffer} bytes
 * @returns {Promise<number>}
 */
const writeByStream = (socket, bytes) => new Promise((resolve, reject) => {
  socket.write(bytes, error => error ? reject(error) : resolve(bytes.length))
})

module.exports = { send }

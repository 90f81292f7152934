'use strict'

const net = require('node:net')
const { Promise, clearTimeout, nowMs, setTimeout, stringifyJson } = require('../primordials')
const { PROTOCOL_VERSION } = require('../protocol/frame')
const { LostDescriptor, descriptorOf } = require('../own-descriptor')

const CONNECT_WITHIN_MS = 500
/** An exporter that takes nothing for so long is gone. */
const STALLED_MS = 30_000
/** How soon a full socket is tried again: its buffer holds some hundred kilobytes. */
const AGAIN_MS = 2
/** The app has its turn after this. */
const TURN_MS = 5
/** Bytes that are written at once. */
const SLICE_BYTES = 65_536

/**
 * Bytes to the exporter, as fast as it takes them and no faster: what is not taken is not read from
 * its source. Written straight to the descriptor, as a write that is pending in libuv would keep
 * the process alive.
 *
 * @param {object} options
 * @param {{ path: string }} options.address
 * @param {{ id: string, part: string }} options.header
 * @param {Iterable<Buffer> | AsyncIterable<Buffer>} options.chunks
 * @returns {Promise<number>} bytes that were sent, without the header
 * @throws {Error} when the exporter is gone, or stands still
 */
async function send ({ address, header, chunks }) {
  const socket = await connected(address)
  const own = descriptorOf(socket)
  try {
    const write = writerOf(socket, own)
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
    // The app may have closed the descriptor, and another file have its number.
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
      // Nobody answers here: what is read costs the app, and says that this is no exporter.
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
function writerOf (socket, own) {
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
        if (nowMs() - tookMs > STALLED_MS) throw new Error('the exporter takes no more')
        await turn(AGAIN_MS)
      }
      if (nowMs() - turnBeganMs > TURN_MS) await turn(0)
    }
  }
}

/**
 * Where a socket shows no descriptor (Windows pipes).
 * @param {net.Socket} socket
 * @param {Buffer} bytes
 * @returns {Promise<number>}
 */
const writeByStream = (socket, bytes) => new Promise((resolve, reject) => {
  socket.write(bytes, error => error ? reject(error) : resolve(bytes.length))
})

module.exports = { send }

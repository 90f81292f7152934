'use strict'

const net = require('node:net')
const { MAX_LINE_BYTES } = require('@memwatch/agent/protocol/frame')
const { hello, frame, line } = require('../../test/support/frames')

/** No process has such a number: proc(5) allows at most 2^22. */
const FIRST_PID = 10_000_000

/**
 * A connection to an agents' socket that ignores errors.
 * @param {string} socketPath
 * @returns {Promise<net.Socket | undefined>} socket; undefined if the connection was refused
 */
async function connect (socketPath) {
  const socket = net.connect(socketPath)
  const opened = await new Promise(resolve => {
    socket.once('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
  })
  return opened ? socket : undefined
}

/**
 * Resolves once the bytes have left this process, or the connection is closed.
 * @param {net.Socket} socket
 * @param {string | Buffer} bytes
 */
async function send (socket, bytes) {
  if (socket.destroyed || socket.write(bytes)) return
  await new Promise(resolve => {
    const done = () => {
      socket.off('drain', done).off('close', done)
      resolve(undefined)
    }
    socket.once('drain', done).once('close', done)
  })
}

/**
 * @param {number} i
 * @param {object} [changes]
 * @returns {string} a hello that is accepted, with its newline
 */
const helloLine = (i, changes = {}) =>
  line(
    hello({ pid: FIRST_PID + i, name: `mallory-${i}`, startedAtUnixMs: 1_000_000 + i, ...changes })
  ) + '\n'
/**
 * @param {number} sequence
 * @param {object} [values]
 * @returns {string} a frame that is accepted, with its newline
 */
const frameLine = (sequence, values = { rssBytes: 50 * 2 ** 20, heapUsedBytes: 2 ** 24 }) =>
  line(frame({ sequence, uptimeSeconds: sequence, values })) + '\n'

/**
 * Builds a line of the maximum length from as many units as fit.
 * @param {string} head
 * @param {(i: number) => string} unit
 * @param {string} tail
 */
function longest (head, unit, tail) {
  const units = []
  let bytes = Buffer.byteLength(head + tail) + 16
  for (let i = 0; ; i++) {
    const next = unit(i)
    bytes += Buffer.byteLength(next) + 1
    if (bytes > MAX_LINE_BYTES) break
    units.push(next)
  }
  return `${head}${units.join(',')}${tail}\n`
}

const FRAME = '{"v":1,"type":"frame","sequence":1,"atUnixMs":1,"uptimeSeconds":1,'
/** Lines of maximum length: frames with unknown fields. */
const LONGEST_FRAMES = {
  lists: longest(`${FRAME}"values":{"rssBytes":1},"junk":[`, () => '[]', ']}'),
  objects: longest(`${FRAME}"values":{"rssBytes":1,"junk":[`, () => '{"a":{}}', ']}}'),
  keys: longest(`${FRAME}"values":{`, i => `"k${i}":1`, '}}'),
  text: longest(`${FRAME}"values":{"rssBytes":1},"junk":["`, () => '\u4e2d\u6587', '"]}'),
  numbers: longest(`${FRAME}"values":{"rssBytes":1},"junk":[`, () => '1.5', ']}')
}

/**
 * @param {object} changes
 * @param {number} i
 * @returns {string}
 */
const withFields = (changes, i) => helloLine(i, changes)
/**
 * Longest hellos that the contract allows.
 * @type {((i: number) => string)[]}
 */
const LONGEST_HELLOS = [
  i =>
    withFields(
      { allowedFlags: Array.from({ length: 60 }, (_, n) => `--flag-${i}-${n}-`.padEnd(4096, 'x')) },
      i
    ),
  i =>
    withFields(
      {
        nodeOptions: Array.from({ length: 1000 }, (_, n) => `--title=${i}-${n}-`.padEnd(240, 'y'))
      },
      i
    ),
  i => withFields({ mallocEnv: { ['K'.repeat(250_000)]: String(i) } }, i),
  i =>
    withFields(
      {
        mallocEnv: Object.fromEntries(
          Array.from({ length: 60 }, (_, n) => [`GLIBC_${n}`, `${i}`.padEnd(4000, 'z')])
        )
      },
      i
    ),
  i => withFields({ junk: Array(80_000).fill([]) }, i)
]

module.exports = { connect, send, helloLine, frameLine, LONGEST_FRAMES, LONGEST_HELLOS, FIRST_PID }

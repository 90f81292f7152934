'use strict'

// Measures single calls, once a second in an otherwise idle process: `node cold-calls.js CALL
// COUNT` sends the µs of each to its parent.
const fs = require('node:fs')
const net = require('node:net')
const v8 = require('node:v8')
const { once } = require('node:events')
const { performance } = require('node:perf_hooks')

const [call, count] = process.argv.slice(2)
/** Text with the size and the kind of numbers of a frame. */
const FRAME = Object.fromEntries(
  Array.from({ length: 60 }, (_, i) => [`someFieldOfAFrame${i}`, i * 12345.678])
)

/** @returns {Promise<Record<string, () => unknown>>} calls by their printed names */
async function calls () {
  const statm = fs.openSync('/proc/self/statm', 'r')
  const buffer = Buffer.alloc(4096)
  const line = `${JSON.stringify(FRAME)}\n`
  const socketPath = /** @type {string} */ (process.env.SOCKET)
  const socket = net.connect(socketPath)
  await once(socket, 'connect')
  const { fd } = /** @type {any} */ (socket)._handle
  return {
    nothing: () => {},
    'performance.eventLoopUtilization()': () => performance.eventLoopUtilization(),
    'process.cpuUsage()': () => process.cpuUsage(),
    'v8.getHeapStatistics()': () => v8.getHeapStatistics(),
    'v8.getHeapSpaceStatistics()': () => v8.getHeapSpaceStatistics(),
    'read of an open /proc/self/statm': () => fs.readSync(statm, buffer, 0, buffer.length, 0),
    'JSON.stringify() of 60 numbers': () => JSON.stringify(FRAME),
    'write of this JSON to a Unix socket': () => fs.writeSync(fd, line)
  }
}

/** @param {string[] | number[]} message to the parent */
const exitWith = message =>
  process.send?.(message, undefined, undefined, () => process.exit())

async function main () {
  const all = await calls()
  if (!call) return exitWith(Object.keys(all))
  /** @type {number[]} */
  const micros = []
  setInterval(() => {
    const began = performance.now()
    all[call]()
    micros.push((performance.now() - began) * 1000)
    if (micros.length === Number(count)) exitWith(micros)
  }, 1000)
}

main()

'use strict'

const { isMainThread } = require('node:worker_threads')
const { performance } = require('node:perf_hooks')
const { PROTOCOL_VERSION, MAX_LINE_BYTES } = require('./frame')
const { Guard } = require('./guard')
const { hello } = require('./identity')
const { Transport } = require('./transport')
const { processStatus } = require('./collect/process-status')
const { mallocMaps } = require('./collect/malloc-maps')
const { fileDescriptors } = require('./collect/file-descriptors')
const { processCpu, threadCpu } = require('./collect/cpu')
const { cgroup } = require('./collect/cgroup')
const { heap } = require('./collect/heap')
const { gc } = require('./collect/gc')
const { eventLoop } = require('./collect/event-loop')
const { delay } = require('./collect/delay')
const { resources } = require('./collect/resources')

/** Loading the agent takes time of the app's start; the first frame waits until the app has had its turn. */
const FIRST_FRAME_MS = 100

/**
 * Start watching this isolate: one unref'd timer, collect → encode → send.
 * @param {import('./config').Config} config
 * @returns {{ stop: () => void }}
 */
function start (config) {
  const guard = new Guard()
  const wrap = guard.wrap.bind(guard)
  const frameMs = config.intervalSeconds * 1000
  const collectors = [
    ...(isMainThread ? [processStatus(), mallocMaps(), fileDescriptors(), processCpu(), cgroup()] : []),
    threadCpu(), heap(), gc(wrap), eventLoop(), delay(frameMs, wrap), resources()
  ]
  const transport = new Transport(config.socket, () => {
    const line = JSON.stringify({ v: PROTOCOL_VERSION, type: 'hello', ...hello(config.name), intervalSeconds: config.intervalSeconds })
    return line + '\n'
  })
  const reads = collectors.map(collector => wrap('collect', collector.read))
  const starts = collectors.map(collector => wrap('start', collector.start ?? (() => {})))
  let count = 0
  let sequence = 0
  let framesDropped = 0
  let collectSeconds = 0
  /** @type {NodeJS.Immediate | undefined} */
  let immediate

  // What was read rarely and not sent goes with the next frame.
  /** @type {import('./frame').Frame['values']} */
  let unsent = {}

  /** @param {number} nowSeconds when the frame was due and its timer fired */
  const send = nowSeconds => {
    const values = unsent
    const tick = { count: count++, nowSeconds }
    for (const read of reads) read(values, tick)
    values.agentErrors = guard.errors
    values.framesDropped = framesDropped
    values.collectSeconds = collectSeconds
    sequence++
    const line = JSON.stringify({
      v: PROTOCOL_VERSION,
      type: 'frame',
      sequence,
      atUnixMs: Date.now(),
      uptimeSeconds: Math.round(performance.now()) / 1000,
      values
    })
    if (line.length < MAX_LINE_BYTES && transport.write(line + '\n')) {
      for (const { sent } of collectors) sent?.()
      unsent = {}
    } else {
      framesDropped++
    }
  }

  const tick = wrap('tick', (/** @type {number} */ nowSeconds) => {
    const began = performance.now()
    transport.tick(nowSeconds)
    send(nowSeconds)
    collectSeconds += (performance.now() - began) / 1000
  })
  // Node hands out the GCs of a turn before its immediates: read in one, a frame knows of all that were before it.
  const due = () => {
    immediate = setImmediate(tick, performance.now() / 1000)
  }
  const bye = wrap('bye', (/** @type {number} */ exitCode) => {
    transport.finish()
    send(performance.now() / 1000)
    transport.write(JSON.stringify({ v: PROTOCOL_VERSION, type: 'bye', sequence: ++sequence, atUnixMs: Date.now(), exitCode }) + '\n')
  })

  for (const startCollector of starts) startCollector()
  transport.tick(performance.now() / 1000)
  /** @type {NodeJS.Timeout} */
  let timer = setTimeout(() => {
    due()
    timer = setInterval(due, frameMs).unref()
  }, Math.min(FIRST_FRAME_MS, frameMs)).unref()
  process.once('exit', bye)

  return {
    stop: wrap('stop', () => {
      clearTimeout(timer)
      clearImmediate(immediate)
      process.removeListener('exit', bye)
      for (const { stop } of collectors) stop?.()
      transport.stop()
    })
  }
}

module.exports = { start }

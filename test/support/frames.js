'use strict'

const { PROTOCOL_VERSION, GC_PAUSE_BOUNDS_SECONDS } = require('@memwatch/agent/protocol/frame')

const MIB = 2 ** 20

/** A hello of an agent on Node 20 in a container of 512 MiB. @param {object} [changes] */
function hello (changes = {}) {
  return {
    type: 'hello',
    agent: '0.1.0',
    pid: 4711,
    threadId: 0,
    startedAtUnixMs: 1_760_000_000_000,
    name: 'api',
    intervalSeconds: 1,
    node: '20.20.2',
    v8: '11.3.244.8-node.38',
    platform: 'linux',
    arch: 'x64',
    libc: 'glibc',
    allocator: 'glibc',
    pointerCompression: false,
    execArgv: [],
    nodeOptions: [],
    mallocEnv: {},
    allowedFlags: ['--max-semi-space-size', '--max-old-space-size'],
    hostMemoryBytes: 24_106 * MIB,
    constrainedBytes: 512 * MIB,
    ...changes
  }
}

/** @param {object} [changes] */
function frame (changes = {}) {
  return {
    type: 'frame',
    sequence: 1,
    atUnixMs: 1_760_000_001_000,
    uptimeSeconds: 1,
    values: { rssBytes: 50 * MIB },
    ...changes
  }
}

/** A message as text on the wire, without the newline. @param {object} message */
const line = message => JSON.stringify({ v: PROTOCOL_VERSION, ...message })

/**
 * One GC row of a frame: number of pauses, and their total seconds.
 * @param {number} count
 * @param {number} pauseSeconds
 * @returns {import('@memwatch/agent/protocol/frame').PauseRow}
 */
function gcRow (count, pauseSeconds) {
  const buckets = Array(GC_PAUSE_BOUNDS_SECONDS.length + 1).fill(0)
  buckets[3] = count
  return [count, pauseSeconds, count > 0 ? pauseSeconds / count : 0, buckets]
}

module.exports = { hello, frame, line, gcRow, MIB }

'use strict'

const { originOf } = require('./call-frames')
const { cpuSites } = require('./cpu-sites')

/** Modules that pass data from sockets, files and other streams to the app. */
const READS = /^node:(?:internal\/streams\/|dgram$)/

/**
 * Finds the functions that get data from streams, or datagrams. Node.js allocates these data before
 * it calls the app, so a heap profile of retained data names no function of the app. V8 may also
 * inline the function into Node.js, and then counts what it allocates for Node.js. A CPU profile
 * separates them. The time of a function includes everything that it calls.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
const dataHandlers = (profile, agentFolder) => cpuSites(profile, agentFolder, stack => {
  const reads = stack.findIndex(({ callFrame }) => READS.test(callFrame.url))
  // Frames that Node.js called, the outermost first.
  const called = stack.slice(0, Math.max(0, reads)).reverse()
  const handler = called.find(({ callFrame }) => originOf(callFrame) === 'app') ??
    called.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  return handler ? { callFrame: handler.callFrame, via: null, call: null } : null
})

module.exports = { dataHandlers }

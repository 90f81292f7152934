'use strict'

const { processStatus } = require('./process-status')
const { mallocMaps } = require('./malloc-maps')
const { fileDescriptors } = require('./file-descriptors')
const { processCpu, threadCpu } = require('./cpu')
const { cgroup } = require('./cgroup')
const { heap } = require('./heap')
const { eventLoop } = require('./event-loop')
const { delay } = require('./delay')
const { resources } = require('./resources')

/**
 * All collectors but that of GCs, which starts before them. What is the process's comes from the main thread only.
 * @param {object} options
 * @param {boolean} options.isMainThread
 * @param {number} options.frameMs
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} options.guarded
 * @returns {import('./collector').Collector[]}
 */
function collectors ({ isMainThread, frameMs, guarded }) {
  return [
    ...(isMainThread ? [processStatus(), mallocMaps(), fileDescriptors(), processCpu(), cgroup()] : []),
    threadCpu(), heap(), eventLoop(), delay(frameMs, guarded), resources()
  ]
}

module.exports = { collectors }

'use strict'

const { processStatus } = require('./process-status')
const { memoryMap } = require('./memory-map')
const { allocatorBooks } = require('./allocator-books')
const { fileDescriptors } = require('./file-descriptors')
const { processCpu, threadCpu, runQueue } = require('./cpu')
const { cgroup } = require('./cgroup')
const { heap } = require('./heap')
const { eventLoop } = require('./event-loop')
const { delay } = require('./delay')
const { resources } = require('./resources')
const { addons } = require('./addons')
const { bufferPool } = require('./buffer-pool')
const { warnings } = require('./warnings')

/**
 * All collectors but that of GCs, which starts before them. What is the process's comes from the main thread only.
 * @param {object} options
 * @param {boolean} options.isMainThread
 * @param {number} options.frameMs
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} options.guarded
 * @param {() => number} options.majors major GCs so far
 * @param {import('../allocator-access').AllocatorAccess} [options.access] where malloc may be asked
 * @param {number} [options.memoryLimitBytes] of the container, where its cgroup cannot be read; 0 is none
 * @returns {import('./collector').Collector[]}
 */
function collectors ({ isMainThread, frameMs, guarded, majors, access, memoryLimitBytes }) {
  const loaded = addons()
  return [
    ...(isMainThread ? [processStatus(), memoryMap({ look: loaded.look }), ...(access ? [allocatorBooks(access)] : []), loaded, fileDescriptors(), processCpu(), cgroup({ fallbackLimitBytes: memoryLimitBytes })] : []),
    threadCpu(), runQueue(), heap(), eventLoop(), delay(frameMs, guarded), resources(), bufferPool({ majors }), warnings(guarded)
  ]
}

module.exports = { collectors }

'use strict'

/**
 * All collectors except that of GCs, which starts earlier, in the order of their readings. Only the
 * main thread reads values of the process. Modules load one by one with pauses: loading all at once
 * would block the app for milliseconds.
 * @param {object} options
 * @param {boolean} options.isMainThread
 * @param {number} options.frameMs
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void}
 *   options.guarded
 * @param {import('./memory-map').Metered} options.metered
 * @param {() => number} options.majors major GCs so far
 * @param {import('./gc').OwnGc} options.ownGc
 * @param {import('../allocator-access').AllocatorAccess} [options.access]
 * @param {number} [options.memoryLimitBytes] limit without a readable cgroup; 0: none
 * @returns {Generator<import('./collector').Collector | undefined, void>} undefined: a pause
 */
function * collectors ({
  isMainThread,
  frameMs,
  guarded,
  metered,
  majors,
  ownGc,
  access,
  memoryLimitBytes
}) {
  if (isMainThread) {
    const files = require('../read-file').kernelFiles()
    yield Object.assign(require('./process-status').processStatus({ files }), { stop: files.close })
    const addons = require('./addons').addons(require('../addon').locateAddon())
    yield
    require('./mappings')
    yield
    require('./resident-pages')
    yield
    require('./memory-reader')
    yield
    require('./memory-scan')
    yield
    const { MemoryMap } = require('./memory-map')
    // Malloc may free and retain memory while anonymous memory stands still: with access to malloc,
    // scan every ten seconds even then.
    yield new MemoryMap(
      { frameMs, metered, onMaps: addons.readMaps, ...(access && { atRestEverySeconds: 10 }) },
      { read: files.readKept }
    )
    if (access) yield require('./allocator-statistics').allocatorStatistics(access)
    yield addons
    yield require('./file-descriptors').fileDescriptors()
    yield require('./cpu').processCpu()
    require('../protocol/cgroup-paths')
    yield
    const { Cgroup } = require('./cgroup')
    yield new Cgroup({ files, fallbackLimitBytes: memoryLimitBytes })
  }
  yield require('./cpu').threadCpu()
  yield require('./cpu').runQueue()
  yield require('./heap').heap()
  yield require('./event-loop').eventLoop()
  yield new (require('./delay').EventLoopDelay)(frameMs, guarded, ownGc)
  yield require('./resources').resources()
  yield require('./connections').connections()
  yield require('./buffer-pool').bufferPool({ majors })
  yield require('./warnings').warnings(guarded)
}

module.exports = { collectors }

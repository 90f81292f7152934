'use strict'

const { Guard } = require('../agent/guard')
const { collectors } = require('../agent/collect')
const { noOwnGc } = require('../agent/collect/gc')
const { exporterState } = require('../test/support/exporter-state')
const { createMetrics } = require('../exporter/expose/metrics')
const { replayFile } = require('../cli/sources/replay-file')

/**
 * Code that runs permanently, in repeatable portions of some milliseconds:
 *
 *   frame     the agent reads and encodes 200 frames
 *   ingest    the exporter takes and judges a recording
 *   scrape    /metrics of 20 targets
 *
 * bench/ratios.js runs the copy of this file in the tree that it measures, which may be an old
 * commit. This file may therefore use only files of its own tree.
 *
 * @param {string} recording a file of frames
 * @returns {Promise<{ work: Record<string, () => unknown>, stop: () => void }>}
 */
async function hotPaths (recording) {
  const guard = new Guard()
  const options = {
    isMainThread: true,
    frameMs: 1000,
    guarded: guard.wrap.bind(guard),
    metered: guard.wrap.bind(guard),
    majors: () => 0,
    ownGc: noOwnGc()
  }
  const all = [...collectors(options)].filter(collector => collector !== undefined)
  for (const collector of all) collector.start?.()
  let count = 0
  function frame () {
    const values = {}
    // All frames lie within one second, so collectors with a time interval read only once.
    const tick = { count: ++count, nowSeconds: count / 1000 }
    for (const collector of all) collector.read(values, tick)
    return JSON.stringify(values)
  }
  const { targets: [target] } = await replayFile(recording)
  const targets = Array(20).fill(target)
  const metrics = createMetrics({
    targets: () => targets,
    state: () => exporterState({ targets: 20 }),
    compat: true
  })
  return {
    work: {
      frame: () => { for (let i = 0; i < 200; i++) frame() },
      ingest: () => replayFile(recording),
      scrape: () => metrics.text()
    },
    stop: () => { for (const collector of all) collector.stop?.() }
  }
}

module.exports = { hotPaths }

'use strict'

const { jemallocOverhead } = require('../memory/scan')
const { NATIVE_SECONDS } = require('./native-memory')

/** Time for which jemalloc retains freed memory: dirty_decay_ms of the recommended setting. */
const JEMALLOC_DECAY_SECONDS = 1

/**
 * Average saving of RSS under jemalloc: the slack, less jemalloc's overhead and the memory freed
 * within its decay time. Null without a scan of the memory map.
 * @param {import('../history/window').Window} window
 */
const jemallocSavingBytes = window => {
  const seconds = window.settledSeconds(NATIVE_SECONDS)
  const slack = window.points('allocatorSlackBytes', seconds).values
  const { times, values } = window.points('externalBytes', seconds)
  if (slack.length === 0 || values.length < 2) return null
  const peaks = window.points('externalPeakBytes', seconds).values
  let freed = 0
  for (let i = 1; i < values.length; i++) {
    freed += Math.max(0, Math.max(peaks[i] ?? 0, values[i - 1]) - values[i])
  }
  const freedPerSecond = freed / (times[times.length - 1] - times[0])
  return Math.max(
    0,
    mean(slack) - jemallocOverhead(mean(values)) - freedPerSecond * JEMALLOC_DECAY_SECONDS
  )
}

/** @param {number[]} values */
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length

module.exports = { jemallocSavingBytes }

'use strict'

const { jemallocOverhead } = require('../memory/scan')
const { RATE_SECONDS } = require('../history/window')
const { NATIVE_SECONDS } = require('./native-memory')

/** Time for which jemalloc retains freed memory: dirty_decay_ms of the recommended setting. */
const JEMALLOC_DECAY_SECONDS = 1

/**
 * Saving of RSS under jemalloc: the slack, less jemalloc's overhead and the memory freed within its
 * decay time. The slack is its average, or what has been there for the last seconds, if that is
 * more: memory that was freed lately and stays. Null without a scan of the memory map.
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
  const standing = Math.min(...window.points('allocatorSlackBytes', RATE_SECONDS).values)
  const slackBytes = Math.max(mean(slack), Number.isFinite(standing) ? standing : 0)
  return Math.max(
    0,
    slackBytes - jemallocOverhead(mean(values)) - freedPerSecond * JEMALLOC_DECAY_SECONDS
  )
}

/** @param {number[]} values */
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length

module.exports = { jemallocSavingBytes }

'use strict'

const { median, quantile } = require('simple-statistics')

/**
 * A quiet second uses less than this share of the CPU of the run's busiest tenth of seconds.
 */
const QUIET_SHARE = 0.25
/**
 * In a quiet second the event loop is active for less than this share of its activity in the
 * busiest tenth. CPU time alone is not enough: on a busy machine a process gets little CPU although
 * its loop is active and waits.
 */
const QUIET_LOOP_SHARE = 0.5
const BUSIEST = 0.9
/** CPU use, in cores, below which a process has no load. */
const LEAST_BUSY_CORES = 0.05
/** A shorter quiet phase is a pause in the load, not its end. */
const LEAST_SECONDS = 5

/**
 * RSS after the load: the median over the later half of the last quiet part. By then an allocator
 * has returned all memory that it returns within seconds. A quiet part is the longest sequence of
 * quiet seconds after a busy second, of at least five seconds. A single busy second, such as a
 * health check or a late GC, does not end it.
 *
 * @param {{ seconds: number[], rssBytes: number[], cpuSeconds: number[], loopSeconds: number[] }}
 *   run one entry per frame; CPU time and active time of the event loop are cumulative
 * @returns {number | null} bytes; null if the load lasts until the end, or if there is no load
 */
function rssAfterLoad ({ seconds, rssBytes, cpuSeconds, loopSeconds }) {
  if (seconds.length < LEAST_SECONDS) return null
  const rate = (/** @type {number[]} */ counter) => counter.slice(1).map((value, i) => (value - counter[i]) / (seconds[i + 1] - seconds[i]))
  const [cores, loop] = [rate(cpuSeconds), rate(loopSeconds)]
  const [busyCores, busyLoop] = [quantile(cores, BUSIEST), quantile(loop, BUSIEST)]
  if (!(busyCores >= LEAST_BUSY_CORES)) return null
  const around = (/** @type {number[]} */ rates, /** @type {number} */ i) => median(rates.slice(Math.max(0, i - 1), i + 2))
  const isQuiet = cores.map(
    (_, i) =>
      around(cores, i) < QUIET_SHARE * busyCores && around(loop, i) < QUIET_LOOP_SHARE * busyLoop
  )
  for (let end = isQuiet.lastIndexOf(true); end > 0; end = isQuiet.lastIndexOf(true, end)) {
    const start = isQuiet.lastIndexOf(false, end) + 1
    if (start === 0) return null // No busy second precedes it: the load had not begun.
    // Entry i of a rate ends at entry i + 1 of seconds.
    if (seconds[end + 1] - seconds[start] >= LEAST_SECONDS) {
      return median(rssBytes.slice(Math.floor((start + end + 1) / 2), end + 2))
    }
    end = start - 1
  }
  return null
}

module.exports = { rssAfterLoad, LEAST_SECONDS }

'use strict'

/**
 * Blocks of the event loop that are rare and long, such as those of a job that runs every minute.
 * The window of the other delays is shorter than the time between two such blocks.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 *
 * @typedef {object} LongBlocks
 * @property {number} count
 * @property {number} longestSeconds 0 without a block
 * @property {number} spanSeconds time from the first to the last block
 * @property {number | null} waitSeconds mean wait of a request because of these blocks
 */

const LONG_SECONDS = 300
/** Twice the delay that a person notices. */
const BLOCK_SECONDS = 0.2

/**
 * Blocks in which the thread computed. The computed part of a delay is at most the loop's active
 * time and the CPU time without GC: a thread that was stopped, or waited for a CPU, computed less.
 * @param {Window} window
 * @returns {LongBlocks}
 */
const longBlocks = window => window.once('long blocks', () => {
  const seconds = window.settledSeconds(LONG_SECONDS)
  const { times, values } = window.points('longestDelaySeconds', seconds)
  const activeAt = increases(window.points('eventLoopActiveSeconds', seconds))
  const workAt = increases(window.points('workSeconds', seconds))
  const found = { count: 0, longestSeconds: 0, firstAt: 0, lastAt: 0, sum: 0 }
  for (let i = 1; i < times.length; i++) {
    if (values[i] < BLOCK_SECONDS) continue
    const block = Math.min(values[i], activeAt(times[i]), workAt(times[i]))
    if (block < BLOCK_SECONDS) continue
    if (found.count === 0) found.firstAt = times[i]
    found.count++
    found.lastAt = times[i]
    found.longestSeconds = Math.max(found.longestSeconds, block)
    found.sum += block ** 2 / 2
  }
  const overSeconds = times.length > 1 ? times[times.length - 1] - times[0] : 0
  return {
    count: found.count,
    longestSeconds: found.longestSeconds,
    spanSeconds: found.lastAt - found.firstAt,
    waitSeconds: overSeconds > 0 ? found.sum / overSeconds : null
  }
})

/**
 * Increases of a counter from frame to frame.
 * @param {{ times: number[], values: number[] }} points of the counter
 * @returns {(time: number) => number} increase from the frame before to the frame of that time, 0
 *   if unknown. Each call takes a later time than the one before, so all calls read the points once
 */
function increases ({ times, values }) {
  let at = 0
  return time => {
    while (at < times.length && times[at] < time) at++
    return at > 0 && times[at] === time ? values[at] - values[at - 1] : 0
  }
}

const OVER = `that computed for ${BLOCK_SECONDS} s or more, in the last ` +
  `${LONG_SECONDS / 60} minutes without the start phase`

module.exports = {
  longBlocksSeen: /** @type {Signal} */ ({
    unit: 'count',
    help: `Number of blocks of the event loop ${OVER}.`,
    compute: window => longBlocks(window).count
  }),
  longBlocksSpanSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `Time from the first to the last block of the event loop ${OVER}.`,
    compute: window => longBlocks(window).spanSeconds
  }),
  longestBlockSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `Longest block of the event loop ${OVER}.`,
    compute: window => longBlocks(window).longestSeconds
  }),
  longBlocksWaitSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Expected wait for the event loop at a random moment because of the blocks ' +
      `${OVER}: a block of L seconds adds L²/2.`,
    compute: window => longBlocks(window).waitSeconds
  })
}

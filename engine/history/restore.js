'use strict'

const { ordered, LASTING, TIERS } = require('./history')

/**
 * Restores the history that a previous exporter saved. Full blocks are used unchanged. Rows outside
 * of full blocks are rebuilt from the next finer step: minutes from steps of ten seconds, and these
 * from seconds.
 *
 * @param {object} options
 * @param {import('./history').History} options.history
 * @param {import('./flight').Flight} options.flight
 * @param {import('./flight').SealedBlock[]} options.blocks oldest first
 * @param {{ time: number, row: ArrayLike<number> }[]} options.seconds oldest first, in the order of
 *   `ordered`
 */
function restoreInto ({ history, flight, blocks, seconds }) {
  for (const block of blocks) flight.restore(block)
  const minutesUntil = flight.sealedUntil(60)
  const tensUntil = flight.sealedUntil(10)
  const end = seconds.at(-1)?.time ?? Math.max(minutesUntil, tensUntil)

  // The history computes its rows of ten minutes while minutes are appended, so it must receive all
  // minutes that the longest tier covers.
  restoreTier(history, flight, {
    tier: 60,
    from: 60,
    afterSeconds: end - LASTING.rows * LASTING.stepSeconds
  })
  flight.refill(minutesUntil)
  restoreTier(history, flight, { tier: 10, from: 10, afterSeconds: end - reach(10) })
  restoreTier(history, flight, { tier: 60, from: 10, afterSeconds: minutesUntil })
  for (const { time, row } of seconds) {
    const read = (/** @type {import('./tracks').TrackName} */ track) => row[ordered.indexOf(track)]
    if (time > end - reach(1)) history.restore(1, time, read)
    if (time <= tensUntil) continue
    history.restore(10, time, read)
    history.restore(60, time, read)
    flight.append(time, row)
  }
}

/** Seconds by which a tier of the history reaches back. @param {number} step */
const reach = step => {
  const { rows, stepSeconds } = /** @type {typeof TIERS[number]} */ (TIERS.find(({ stepSeconds }) => stepSeconds === step))
  return rows * stepSeconds
}

/**
 * Rebuilds a tier of the history from the steps of the flight recorder.
 * @param {import('./history').History} history
 * @param {import('./flight').Flight} flight
 * @param {{ tier: 10 | 60, from: 10 | 60, afterSeconds: number }} options
 */
function restoreTier (history, flight, { tier, from, afterSeconds }) {
  for (const { time, read } of flight.steps(from, afterSeconds)) history.restore(tier, time, read)
}

module.exports = { restoreInto }

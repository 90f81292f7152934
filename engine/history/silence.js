'use strict'

/**
 * Silence of a target, in intervals between its frames: the one scale on which all parts of the
 * exporter say that nothing was heard for long. A frame may be late by half an interval on a busy
 * machine.
 */

/** A frame is missing: from here on the process is polled, and an abort is hardly an accident. */
const LATE_INTERVALS = 1.5
/** Two frames in a row are missing: the event loop does not turn, and the target is silent. */
const SILENT_INTERVALS = 3
/**
 * Four frames in a row are missing, as after a restart of the network: the target counts as down,
 * and another connection may take its identity.
 */
const DOWN_INTERVALS = 5

/**
 * @param {number} silentSeconds
 * @param {{ intervalSeconds: number }} target
 * @returns {number} intervals
 */
const countIntervals = (silentSeconds, { intervalSeconds }) => silentSeconds / intervalSeconds

module.exports = { LATE_INTERVALS, SILENT_INTERVALS, DOWN_INTERVALS, countIntervals }

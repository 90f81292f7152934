'use strict'

/**
 * Stages of a target's silence, in intervals between its frames. All parts of the exporter use
 * these numbers. On a busy machine a frame may be late by half an interval.
 */

/**
 * One frame is missing. From then on the exporter polls the process, and treats an aborted
 * connection as the end of the process.
 */
const LATE_INTERVALS = 1.5
/** Two frames in a row are missing: the event loop is blocked, and the target is silent. */
const SILENT_INTERVALS = 3
/**
 * Four frames in a row are missing, as after a network restart. The target counts as down, and
 * another connection may take over its identity.
 */
const DOWN_INTERVALS = 5

/**
 * @param {number} silentSeconds
 * @param {{ intervalSeconds: number }} target
 * @returns {number} intervals
 */
const countIntervals = (silentSeconds, { intervalSeconds }) => silentSeconds / intervalSeconds

module.exports = { LATE_INTERVALS, SILENT_INTERVALS, DOWN_INTERVALS, countIntervals }

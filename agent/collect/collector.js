'use strict'

/**
 * Interface of all collectors.
 *
 * @typedef {import('../protocol/frame').Frame['values']} Values
 * @typedef {object} Tick
 * @property {number} count number of earlier frames, for readings every n frames
 * @property {number} nowSeconds monotonic
 * @property {boolean} [isOnDemand] true for a frame on command: also read expensive values that are
 *   not due
 *
 * @typedef {object} Collector
 * @property {readonly (keyof Values)[]} fields written by `read`
 * @property {(values: Values, tick: Tick) => void} read sets known values; absent is better than 0
 * @property {() => void} [start]
 * @property {() => void} [stop]
 * @property {() => void} [sent] called after the frame was written: peaks since the last frame
 *   restart
 */

module.exports = {}

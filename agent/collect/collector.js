'use strict'

/**
 * The shape that all collectors share: one file, one source.
 *
 * @typedef {import('../protocol/frame').Frame['values']} Values
 * @typedef {object} Tick
 * @property {number} count of frames begun, from 0: what is read every n frames goes by it
 * @property {number} nowSeconds monotonic
 * @property {boolean} [look] read what is dear, too, though it is not due: the exporter asked
 *
 * @typedef {object} Collector
 * @property {readonly (keyof Values)[]} fields that it may set
 * @property {(values: Values, tick: Tick) => void} read sets what it knows; absent is better than 0
 * @property {() => void} [start]
 * @property {() => void} [stop]
 * @property {() => void} [sent] the frame was written: what covers "since the last frame" begins
 *   anew
 */

module.exports = {}

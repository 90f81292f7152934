'use strict'

const { DAY_SECONDS } = require('../statistics/unexplained-growth')

/**
 * Level at the busiest moment of a day, in steps of ten minutes: its highest value on the last day.
 * @param {import('../history/window').Window} window
 * @param {'liveHeapBytes' | 'outsideHeapBytes' | 'rssBytes'} level
 * @param {{ of: string, slope: number }} [growth] since that moment, which is added: of what, and
 *   in bytes a second
 * @returns {number} bytes; 0 within the first ten minutes
 */
const peakOfDay = (window, level, { of, slope } = { of: 'nothing', slope: 0 }) =>
  window.lasting(`peak of ${level} with ${of}`, ({ times, columns }) => {
    const end = times[times.length - 1] ?? 0
    let peak = 0
    columns[level].forEach((value, i) => {
      if (times[i] > end - DAY_SECONDS && value + slope * (end - times[i]) > peak) {
        peak = value + slope * (end - times[i])
      }
    })
    return peak
  })

module.exports = { peakOfDay }

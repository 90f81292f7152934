'use strict'

const BARS = '▁▂▃▄▅▆▇█'

/**
 * Draws values over time as one line of text, the newest at the right. A column shows the maximum
 * of its part of the time, scaled between the minimum and maximum of all values.
 * @param {readonly (number | null)[]} values oldest first; null for a gap
 * @param {number} width number of columns
 * @returns {string} text of this width; spaces for gaps
 */
function sparkline (values, width) {
  const known = values.filter(value => value !== null)
  if (known.length === 0) return ' '.repeat(width)
  const [least, most] = [Math.min(...known), Math.max(...known)]
  const each = Math.max(1, values.length / width)
  const columns = Math.min(width, values.length)
  const text = Array.from({ length: columns }, (_, i) => {
    const from = Math.round(values.length - (columns - i) * each)
    const here = values
      .slice(Math.max(0, from), Math.max(from + 1, Math.round(from + each)))
      .filter(value => value !== null)
    if (here.length === 0) return ' '
    // A constant series is drawn low.
    return BARS[
      most === least
        ? 0
        : Math.round(((Math.max(...here) - least) / (most - least)) * (BARS.length - 1))
    ]
  }).join('')
  return text.padStart(width)
}

module.exports = { sparkline }

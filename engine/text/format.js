'use strict'

const MIB = 2 ** 20

/**
 * @param {number} bytes
 * @returns {string} in MiB, with a decimal below ten: 8.5 MiB, 281 MiB
 */
function formatBytes (bytes) {
  const mib = bytes / MIB
  return `${Math.abs(mib) < 10 ? Number(mib.toFixed(1)) : Math.round(mib)} MiB`
}

/**
 * @param {number} bytes
 * @returns {string} in MiB, to a tenth below 10000: 268.5 MiB, 4144 MiB, 24106 MiB
 */
const formatMebibytes = bytes =>
  `${Number((bytes / MIB).toFixed(bytes < 10_000 * MIB ? 1 : 0))} MiB`

/**
 * @param {number} ratio 0–1
 * @returns {string} 27 %, 0.4 %
 */
function formatRatio (ratio) {
  const percent = ratio * 100
  return `${Math.abs(percent) < 10 ? Number(percent.toFixed(1)) : Math.round(percent)} %`
}

/**
 * @param {number} value
 * @returns {string} with two significant digits below 100
 */
function formatNumber (value) {
  return String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(2)))
}

/**
 * @param {number} seconds
 * @returns {string} 40 s, 2.5 min, 12 min, 3.5 h, 4 days
 */
function formatSeconds (seconds) {
  if (seconds < 120) return `${formatNumber(seconds)} s`
  if (seconds < 7200) return `${formatNumber(Math.round(seconds / 6) / 10)} min`
  if (seconds < 172_800) return `${Number((seconds / 3600).toFixed(1))} h`
  return `${Math.round(seconds / 86_400)} days`
}

/**
 * @param {number} seconds
 * @returns {string} 12 ms; from ten seconds on in seconds
 */
function formatMilliseconds (seconds) {
  if (seconds >= 10) return formatSeconds(seconds)
  return seconds > 0 && seconds < 1e-4 ? 'less than 0.1 ms' : `${formatNumber(seconds * 1000)} ms`
}

/**
 * @param {number} bytes
 * @returns {string} 8 KiB
 */
const formatKibibytes = bytes => `${formatNumber(bytes / 1024)} KiB`

/**
 * Formats a value with its unit for people.
 * @param {number} value
 * @param {string} unit
 */
function formatValue (value, unit) {
  switch (unit) {
    case 'bytes': return formatBytes(value)
    case 'bytesPerSecond': return `${formatBytes(value * 60)}/min`
    case 'ratio': return formatRatio(value)
    case 'seconds': return formatSeconds(value)
    case 'perSecond': return `${formatNumber(value)}/s`
    case 'secondsPerGigabyte': return `${formatNumber(value * 1000)} ms/GB`
    default: return formatNumber(value)
  }
}

module.exports = {
  formatBytes,
  formatKibibytes,
  formatMebibytes,
  formatMilliseconds,
  formatRatio,
  formatNumber,
  formatSeconds,
  formatValue
}

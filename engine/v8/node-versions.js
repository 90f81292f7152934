'use strict'

/**
 * V8 version of each supported line of Node.js: process.versions.v8 of 18.20.8, 19.8.1, 20.20.2,
 * 21.7.3, 22.23.3, 23.11.1, 24.21.0, 25.9.0 and 26.10.0. The V8 version of a line changes only in
 * its first weeks (https://nodejs.org/en/about/previous-releases), and heap sizing did not change
 * in those weeks.
 */
const V8_OF_NODE = Object.freeze({
  18: '10.2',
  19: '10.8',
  20: '11.3',
  21: '11.8',
  22: '12.4',
  23: '12.9',
  24: '13.6',
  25: '14.1',
  26: '14.6'
})

/** Known versions in words, for errors. */
const KNOWN_NODES = '18 to 26'

/**
 * First minor version with a feature, by line. The feature is absent from lines without an entry.
 * @typedef {Readonly<Partial<Record<number, number>>>} Since
 */

/**
 * Support of cgroup v2 memory limits, by libuv 1.45: https://github.com/nodejs/node/issues/47259.
 * 20.2.0 has 1.44.2, 20.3.0 has 1.45.0.
 */
const SEES_CGROUP_V2 = Object.freeze({ 20: 3, 21: 0, 22: 0, 23: 0, 24: 0, 25: 0, 26: 0 })

/**
 * @typedef {object} NodeVersion
 * @property {string} text without the v
 * @property {number} major
 * @property {number | undefined} minor undefined: the newest of the line
 * @property {number} v8Major
 * @property {number} v8Minor
 */

/**
 * @param {string} text as in 22, v22 or 22.23.3
 * @returns {NodeVersion}
 * @throws {RangeError} naming the known versions
 */
function readNodeVersion (text) {
  const match = /^v?(\d{1,3})(?:\.(\d{1,3})(?:\.\d{1,3})?)?$/.exec(text.trim())
  if (!match) {
    throw new RangeError(
      `expected a version of Node.js such as 22, v22 or 22.23.3, got ${JSON.stringify(text)}`
    )
  }
  const version = nodeVersion(match[0].replace('v', ''), V8_OF_NODE[/** @type {keyof typeof V8_OF_NODE} */ (Number(match[1]))])
  if (!version) {
    throw new RangeError(
      `expected Node.js ${KNOWN_NODES}, whose heap sizing is known, got ${JSON.stringify(text)}`
    )
  }
  return version
}

/**
 * Version of a running Node.js, which may be unknown to this file.
 * @param {string} text
 * @param {string | undefined} v8 its process.versions.v8
 * @returns {NodeVersion | undefined} undefined if V8's version cannot be parsed
 */
function nodeVersion (text, v8) {
  const [major, minor] = text.split('.').map(Number)
  const [v8Major, v8Minor] = (v8 ?? '').split('.').map(Number)
  return Number.isFinite(v8Minor) && Number.isFinite(major)
    ? { text, major, minor, v8Major, v8Minor }
    : undefined
}

/**
 * @param {NodeVersion} version
 * @param {Since} since
 */
const has = ({ major, minor = Infinity }, since) => {
  const first = since[major]
  return first !== undefined && minor >= first
}

module.exports = { readNodeVersion, nodeVersion, has, KNOWN_NODES, SEES_CGROUP_V2, V8_OF_NODE }

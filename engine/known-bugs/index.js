'use strict'

const { nodeBugs } = require('./node-bugs')
const { packageBugs } = require('./package-bugs')

/**
 * Known memory bugs, those of Node.js first. Each has a case of the same name in
 * bench/realworld/leaks, which `npm run bench:known-bugs` runs. The results are in reproduced.json.
 * @type {readonly Readonly<import('./define-known-bug').KnownBug>[]}
 */
const knownBugs = Object.freeze([...nodeBugs, ...packageBugs])

/**
 * The last successful run of a bug's case: memwatch named the bug at an affected version, and did
 * not name it at a fixed version.
 * @typedef {object} Reproduced
 * @property {string} date such as 2026-11-23
 * @property {string} leaky version, or way of using it, that leaks
 * @property {string} fixed version, or way of using it, without the leak
 * @property {boolean} likely true if the bug was named as the likely cause
 * @property {number} afterSeconds age of the process when the bug was first named
 */

/** By id. @type {Readonly<Record<string, Reproduced | undefined>>} */
const reproduced = Object.freeze(require('./reproduced.json'))

module.exports = { knownBugs, reproduced }

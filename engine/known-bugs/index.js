'use strict'

const { nodeBugs } = require('./node-bugs')
const { packageBugs } = require('./package-bugs')

/**
 * Known memory bugs, those of Node.js first. Each has a case of the same name in
 * bench/realworld/leaks, which `npm run bench:known-bugs` runs; its results are in reproduced.json.
 * @type {readonly Readonly<import('./define-known-bug').KnownBug>[]}
 */
const knownBugs = Object.freeze([...nodeBugs, ...packageBugs])

/**
 * The last run of a bug in which memwatch named it at a version that has it, and said nothing of it
 * at one that has not.
 * @typedef {object} Reproduced
 * @property {string} date such as 2026-11-23
 * @property {string} leaky version, or use
 * @property {string} fixed version, or use
 * @property {boolean} likely whether it was named as the likely cause
 * @property {number} afterSeconds age of the process when it was first named
 */

/** By id. @type {Readonly<Record<string, Reproduced | undefined>>} */
const reproduced = Object.freeze(require('./reproduced.json'))

module.exports = { knownBugs, reproduced }

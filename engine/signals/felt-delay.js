'use strict'

/** Delay that a person at the other end notices. */
const FELT_SECONDS = 0.1

module.exports = { FELT_SECONDS }

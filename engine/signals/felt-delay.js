'use strict'

/** Delay that a user of the app notices. */
const FELT_SECONDS = 0.1

module.exports = { FELT_SECONDS }

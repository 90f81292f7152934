'use strict'

/** A delay that a person at the other end begins to notice. */
const FELT_SECONDS = 0.1

module.exports = { FELT_SECONDS }

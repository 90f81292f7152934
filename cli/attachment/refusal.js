'use strict'

/** A process that cannot be attached to, and the reason in one sentence. Ends with status 1. */
class Refusal extends Error {}

module.exports = { Refusal }

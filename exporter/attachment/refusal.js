'use strict'

/** A process that cannot be attached to, and the reason in one sentence. Ends with status 1. */
class Refusal extends Error {}

/** No process, several, or no exporter are meant by an argument. Ends with status 2. */
class NotFound extends Error {}

module.exports = { Refusal, NotFound }

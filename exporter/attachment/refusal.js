'use strict'

/**
 * Error for a process to which memwatch cannot attach; its message is the reason, one sentence. The
 * command ends with status 1.
 */
class Refusal extends Error {}

/**
 * Error for an argument that names no process, several processes, or no exporter. The command ends
 * with status 2.
 */
class NotFound extends Error {}

module.exports = { Refusal, NotFound }

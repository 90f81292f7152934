'use strict'

const { refusal } = require('./authorize')
const { CommandError } = require('../commands/commands')

/** Status of an answer that is an error. @type {Record<import('../commands/commands').CommandErrorCode, number>} */
const STATUS = {
  bad_arguments: 400,
  not_enabled: 409,
  not_supported: 409,
  not_trusted: 409,
  unknown_command: 409,
  unknown_capture: 409,
  snapshot_not_allowed: 409,
  too_large: 409,
  busy: 409,
  refused: 409,
  too_soon: 429,
  failed: 500,
  not_connected: 503,
  no_answer: 504
}

/**
 * Say that an agent did not do what was asked.
 * @param {import('fastify').FastifyReply} reply @param {unknown} error
 * @throws what is no CommandError
 */
function refuseCommand (reply, error) {
  if (!(error instanceof CommandError)) throw error
  return reply.code(STATUS[error.code]).send(refusal(error.code, error.message))
}

module.exports = { refuseCommand }

'use strict'

/**
 * Refusals of the API: RFC 9457. `code` is stable, for programs; `detail` is a sentence for people.
 * @type {Readonly<Record<string, { status: number, title: string }>>}
 */
const problems = Object.freeze({
  bad_arguments: { status: 400, title: 'Invalid parameter' },
  unauthorized: { status: 401, title: 'Authentication required' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'No such address' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  unknown_target: { status: 404, title: 'No such target' },
  unknown_process: { status: 404, title: 'No such process' },
  unknown_death: { status: 404, title: 'No such death' },
  unknown_page: { status: 404, title: 'No such page of the list' },
  unknown_capture: { status: 404, title: 'No such capture' },
  busy: { status: 409, title: 'Another command of this kind is running' },
  not_attachable: { status: 409, title: 'The exporter cannot attach to the process' },
  not_enabled: { status: 409, title: 'Not enabled' },
  not_supported: { status: 409, title: 'Not supported by this process' },
  not_trusted: { status: 409, title: 'The agent does not trust the exporter' },
  not_plannable: { status: 409, title: 'No plan is possible for these values' },
  refused: { status: 409, title: 'The agent refused' },
  snapshot_not_allowed: { status: 409, title: 'The app allows no heap snapshots' },
  too_long: { status: 409, title: 'Longer than a capture of this kind may take' },
  too_large: { status: 409, title: 'Too large' },
  unknown_command: { status: 409, title: 'Unknown to this version of the agent' },
  rate_limited: { status: 429, title: 'Too many requests' },
  too_soon: { status: 429, title: 'Too soon after the last command' },
  failed: { status: 500, title: 'The command failed in the app' },
  internal: { status: 500, title: 'Internal error of the exporter' },
  too_busy: { status: 503, title: 'Too many requests are being answered' },
  too_many_viewers: { status: 503, title: 'Too many viewers' },
  not_connected: { status: 503, title: 'The agent is not connected' },
  no_answer: { status: 504, title: 'The agent did not answer' }
})

/**
 * @typedef {{ type: string, title: string, status: number, detail: string, code: string }} Problem
 */

const MEDIA_TYPE = 'application/problem+json'
const ABOUT = 'https://github.com/memwatch/memwatch/blob/main/docs/api.md'

/**
 * @param {string} code code in the table
 * @param {string} detail
 * @returns {Problem}
 */
function problemOf (code, detail) {
  const { status, title } = problems[code] ?? problems.internal
  return { type: `${ABOUT}#${code}`, title, status, detail, code }
}

/**
 * @param {import('fastify').FastifyReply} reply
 * @param {string} code code in the table
 * @param {string} detail
 * @returns {import('fastify').FastifyReply}
 */
function refuse (reply, code, detail) {
  const problem = problemOf(code, detail)
  return reply.code(problem.status).type(MEDIA_TYPE).send(problem)
}

module.exports = { problems, problemOf, refuse, MEDIA_TYPE }

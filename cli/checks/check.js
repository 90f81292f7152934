'use strict'

/**
 * One check of `memwatch doctor`.
 * @typedef {object} Check
 * @property {string} check name of the check, in JSON
 * @property {'ok' | 'problem' | 'unknown'} state unknown: the facts are not visible; `text` is the
 *   reason
 * @property {string} text one or two sentences
 * @property {string} [advice] solution
 */

/** @typedef {import('@memwatch/exporter/process/process-view').ProcessView} ProcessView */
/** @typedef {import('@memwatch/exporter/process/process-view').Settings} Settings */

/**
 * A process under examination.
 * @typedef {object} Subject
 * @property {number} pid
 * @property {ProcessView | undefined} view undefined if the process is not visible
 * @property {Settings | null} settings null if they are unreadable
 * @property {ProcessView[]} ancestors nearest first
 * @property {any} [target] item of /api/v1/targets for its main thread
 * @property {any[]} verdicts verdicts on this target
 */

/**
 * A process that is visible and readable.
 * @typedef {Subject & { view: ProcessView, settings: Settings }} Seen
 */

/**
 * @param {string} check
 * @param {string} text
 * @returns {Check}
 */
const ok = (check, text) => ({ check, state: 'ok', text })

/**
 * @param {string} check
 * @param {string} text
 * @param {string} advice
 * @returns {Check}
 */
const problem = (check, text, advice) => ({ check, state: 'problem', text, advice })

/**
 * @param {string} check
 * @param {string} text reason why the facts are not visible
 * @param {string} [advice]
 * @returns {Check}
 */
const unknown = (check, text, advice) =>
  ({ check, state: 'unknown', text, ...(advice && { advice }) })

/**
 * @param {Pick<Subject, 'pid' | 'view'>} subject
 * @returns {string} reason why its settings are unreadable
 */
function whyUnread ({ pid, view }) {
  if (!view) {
    return `Process ${pid} cannot be seen from here: it has ended, or runs on another machine or ` +
      'in another process namespace.'
  }
  if (!view.env) {
    return `Process ${pid} belongs to user ${view.user}, and this user may not read its ` +
      'environment: run doctor as that user.'
  }
  return `Process ${pid} shows a title in place of its command line.`
}

module.exports = { ok, problem, unknown, whyUnread }

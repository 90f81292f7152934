'use strict'

const { closest } = require('fastest-levenshtein')
const { object, text } = require('@memwatch/engine/text/json-schema')

/**
 * Source of the facts that tools return: the API of an exporter, or the API over a recording.
 * @typedef {object} Facts
 * @property {(path: string, method?: 'GET' | 'POST') => Promise<{ body: any, refused?: string }>}
 *   call calls a path below /api/v1/; refused: the reason
 * @property {(path: string) => Promise<any[]>} list requests all pages of a list
 * @property {(lockfile: string, options: { node?: string }) => Promise<object>} auditFolder
 * @property {(file: string, earlier: string | undefined, signal: AbortSignal) =>
 *   Promise<import('@memwatch/exporter/captures/retainers').Retainers>} readSnapshot
 *
 * @typedef {object} Tool
 * @property {string} name
 * @property {string} title
 * @property {string} description text for the assistant: when to call the tool, and what it returns
 * @property {object} input JSON Schema of its arguments
 * @property {'exporter' | 'captures'} [needs] exporter: the tool needs an exporter, not a
 *   recording; captures: the tool acts on an app, and exists only with --allow-captures
 * @property {Record<string, number>} [most] upper bounds of items in its lists, by the name of the
 *   property
 * @property {(args: any, facts: Facts, signal: AbortSignal) => Promise<object>} answer
 *   throws a ToolError
 */

/**
 * Error for a refusal or failure of a tool: its message is a sentence, and `next` is a step that
 * may help.
 */
class ToolError extends Error {
  /**
   * @param {string} message
   * @param {string} next
   * @param {object} [details]
   */
  constructor (message, next, details = {}) {
    super(message)
    this.next = next
    this.details = details
  }
}

/** Arguments that name one target. */
const ofTarget = {
  target: { ...text, description: 'name of the target, as the tool targets lists it' },
  thread: { ...text, description: 'main (default), or a worker such as worker-1' }
}

/**
 * @param {Record<string, object>} properties
 * @param {string[]} [required]
 */
const argumentsOf = (properties, required = []) =>
  object(properties, Object.keys(properties).filter(name => !required.includes(name)))

/**
 * @param {Record<string, string | number | readonly string[] | undefined>} query
 * @returns {string} query string, without undefined parameters
 */
const queryOf = query => String(new URLSearchParams(Object.entries(query).flatMap(
  ([name, value]) => value === undefined
    ? []
    : [value].flat().map(one => /** @type {[string, string]} */ ([name, String(one)]))
)))

/**
 * @param {{ body: any, refused?: string }} answer
 * @param {string} next advice in case of a refusal
 * @throws {ToolError}
 */
function accept ({ body, refused }, next) {
  if (refused !== undefined) throw new ToolError(refused, next)
  return body
}

/**
 * Finds an item of /api/v1/diagnoses.
 * @param {Facts} facts
 * @param {{ target: string, thread?: string }} wanted
 * @throws {ToolError} names the nearest targets
 */
async function findTarget ({ list }, { target, thread = 'main' }) {
  const found = await list(`diagnoses?${queryOf({ target, thread })}`)
  if (found.length > 0) return found[found.length - 1]
  const known = await list('targets')
  const threads = known.filter(({ target: name }) => name === target).map(({ thread }) => thread)
  const names = [...new Set(known.map(({ target }) => String(target)))]
  if (threads.length > 0) {
    throw new ToolError('this target has no such thread', 'repeat with one of these', { threads })
  }
  throw new ToolError(
    'no target has this name',
    'call targets to get the names, then repeat with one of them; if the process has ended, call ' +
      'deaths',
    { nearest: nearest(target, names) }
  )
}

/** Upper bound of names that an error proposes. */
const MOST_NEAREST = 3

/**
 * @param {string} wanted
 * @param {string[]} names
 * @returns {string[]}
 */
function nearest (wanted, names) {
  const left = new Set(names)
  const found = []
  while (left.size > 0 && found.length < MOST_NEAREST) {
    const name = closest(wanted, [...left])
    left.delete(name)
    found.push(name)
  }
  return found
}

module.exports = { ToolError, accept, argumentsOf, findTarget, nearest, ofTarget, queryOf }

'use strict'

const { plainText } = require('@memwatch/agent/protocol/text-rules')

/** Length limit of a text in a saved record; the longest texts are sentences with a few names. */
const MAX_TEXT_LENGTH = 16_384
/** Upper bound of items in a list, and of keys in a map: ten minutes of seconds are 600 items. */
const MAX_ITEMS = 1000
/**
 * Subset of JSON Schema that exporter/expose/schemas.js uses.
 * @typedef {{ type?: string | string[], enum?: readonly unknown[], anyOf?: Schema[], items?:
 *   Schema, properties?: Record<string, any>, required?: string[], additionalProperties?: any }}
 *   Schema
 */

/**
 * Rebuilds a value from its schema. Unknown properties are dropped, numbers are finite and at most
 * 2^53, texts are well-formed and without control characters, and all sizes are bounded.
 * @param {Schema} schema
 * @param {unknown} value value returned by JSON.parse
 * @returns {any} rebuilt value; undefined if the value does not fit the schema
 */
function rebuild (schema, value) {
  if (schema.anyOf) return first(schema.anyOf, option => rebuild(option, value))
  if (schema.enum) return schema.enum.includes(value) ? value : undefined
  const accepts = (/** @type {string} */ type) => [schema.type].flat().includes(type)
  if (value === null) return accepts('null') ? null : undefined
  if (typeof value === 'boolean') return accepts('boolean') ? value : undefined
  if (typeof value === 'number') return isNumber(value, accepts) ? value : undefined
  if (typeof value === 'string') return accepts('string') ? rebuildText(value) : undefined
  if (Array.isArray(value)) return accepts('array') ? rebuildList(schema, value) : undefined
  return accepts('object') ? rebuildObject(schema, /** @type {any} */ (value)) : undefined
}

/** Last valid time of a Date in ECMAScript. */
const MAX_UNIX_MS = 8.64e15
/**
 * @param {string} name of a property
 * @param {unknown} value
 */
const isNoDate = (name, value) => name.endsWith('UnixMs') && typeof value === 'number' &&
  !(value >= 0 && value <= MAX_UNIX_MS)

/**
 * @param {number} value
 * @param {(type: string) => boolean} accepts
 */
const isNumber = (value, accepts) => Math.abs(value) <= Number.MAX_SAFE_INTEGER &&
  (accepts('number') || (accepts('integer') && Number.isInteger(value)))

/**
 * @param {string} text
 * @returns {string | undefined}
 */
const rebuildText = text => text.length > MAX_TEXT_LENGTH
  ? undefined
  : plainText(text)

/**
 * @param {Schema} schema
 * @param {unknown[]} list
 * @returns {unknown[] | undefined}
 */
function rebuildList ({ items = {} }, list) {
  if (list.length > MAX_ITEMS) return undefined
  const rebuilt = list.map(item => rebuild(items, item))
  return rebuilt.includes(undefined) ? undefined : rebuilt
}

/**
 * @param {Schema} schema
 * @param {Record<string, unknown>} object
 * @returns {Record<string, unknown> | undefined}
 */
function rebuildObject ({ properties = {}, required = [], additionalProperties }, object) {
  const names = additionalProperties ? Object.keys(object) : Object.keys(properties)
  const present = names.filter(name => Object.hasOwn(object, name))
  if (present.length > MAX_ITEMS || required.some(name => !present.includes(name))) return undefined
  const rebuilt = present.map(name =>
    [name, rebuild(properties[name] ?? additionalProperties, object[name])])
  return rebuilt.some(([name, value]) => value === undefined || isNoDate(name, value))
    ? undefined
    : Object.fromEntries(rebuilt)
}

/**
 * @template T, R
 * @param {T[]} list
 * @param {(item: T) => R | undefined} map
 */
function first (list, map) {
  for (const item of list) {
    const found = map(item)
    if (found !== undefined) return found
  }
}

module.exports = { rebuild }

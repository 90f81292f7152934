'use strict'

/** Short forms of JSON Schema: https://json-schema.org/draft/2020-12/schema */

const text = { type: 'string' }
const number = { type: 'number' }

/** @param {string} type */
const nullable = type => ({ type: [type, 'null'] })

/** @param {object} items */
const array = items => ({ type: 'array', items })

/**
 * @param {Record<string, object>} properties all allowed properties
 * @param {string[]} [optional] names of optional properties
 */
const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false
})

module.exports = { array, nullable, number, object, text }

'use strict'

const { number, object, text } = require('../text/json-schema')

/** JSON Schemas of a judgement, for the API and for records on disk. */

const state = { enum: ['unknown', 'ok', 'suspected', 'confirmed'] }
const evidence = object({ signal: text, value: number, limit: number, unit: text, text })

module.exports = { evidence, state }

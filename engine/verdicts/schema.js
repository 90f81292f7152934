'use strict'

const { SEVERITIES } = require('../diagnoses/define-diagnosis')
const { number, object, text } = require('../text/json-schema')

/** JSON Schemas of verdicts, for the API and for records on disk. */

const state = { enum: ['unknown', 'ok', 'suspected', 'confirmed'] }
const severity = {
  enum: SEVERITIES,
  description: 'severity of the finding; without a finding the worst severity of the diagnosis'
}
const evidence = object({ signal: text, value: number, limit: number, unit: text, text })

module.exports = { evidence, severity, state }

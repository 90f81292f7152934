'use strict'

/**
 * JSON Schemas of what the API answers. The verdict's also makes docs/report.schema.json, the contract of
 * `memwatch run --json`.
 */

const nullable = (/** @type {string} */ type) => ({ type: [type, 'null'] })
/** @param {Record<string, object>} properties @param {string[]} [optional] */
const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false
})
/** @param {object} items */
const array = items => ({ type: 'array', items })
const text = { type: 'string' }
const number = { type: 'number' }

const verdict = object({
  diagnosis: text,
  title: text,
  state: { enum: ['unknown', 'ok', 'suspected', 'confirmed'] },
  severity: { enum: ['critical', 'warning', 'info'] },
  opportunity: { type: 'boolean', description: 'something to gain where nothing is wrong: never primary' },
  confirmedAfterSeconds: { ...nullable('number'), description: 'age of the isolate when the verdict was confirmed' },
  summary: text,
  evidence: array(object({ signal: text, value: number, limit: number, unit: text, text })),
  ruledOut: array(object({ diagnosis: text, text })),
  impact: nullable('string'),
  fix: array(object({
    title: text,
    change: object({
      flag: text,
      env: { type: 'object', additionalProperties: text },
      dockerfile: text,
      kubernetes: text,
      code: text
    }, ['flag', 'env', 'dockerfile', 'kubernetes', 'code']),
    predicted: array(object({ signal: text, from: number, to: number, unit: text })),
    risk: text
  })),
  runbook: nullable('string')
})

const targetName = { target: text, thread: text, pid: { type: 'integer' }, node: text }

const targets = array(object({
  ...targetName,
  v8: text,
  libc: text,
  allocator: text,
  up: { type: 'boolean' },
  uptimeSeconds: number,
  lastFrameUnixMs: number,
  framesLost: { type: 'integer' },
  values: { type: 'object', additionalProperties: true, description: 'the newest value of every field of the wire contract' }
}))

const diagnoses = array(object({
  ...targetName,
  primary: { anyOf: [verdict, { type: 'null' }] },
  verdicts: array(verdict)
}))

/** The report of `memwatch run --json`. */
const report = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'memwatch run report',
  ...object({
    schema: { const: 1 },
    command: array(text),
    durationSeconds: number,
    exit: object({ code: nullable('integer'), signal: nullable('string') }),
    targets: array(object({
      ...targetName,
      primary: { anyOf: [verdict, { type: 'null' }], description: 'the confirmed verdict to act on first; null when nothing is confirmed' },
      verdicts: array(verdict)
    }))
  })
}

module.exports = { targets, diagnoses, report }

'use strict'

const { array, nullable, object, text } = require('../text/json-schema')

/** JSON Schema of a known bug attached to a verdict. */
const knownBug = object({
  id: text,
  package: { ...text, description: 'node, or the name of a package' },
  version: { ...text, description: 'the version in use, which has the bug' },
  fixedIn: {
    ...nullable('string'),
    description: 'the first newer version without it; null where there is none'
  },
  workaround: nullable('string'),
  thread: { ...text, description: 'address of the public thread' },
  likely: {
    type: 'boolean',
    description: 'whether a suspect of the verdict lies there; else it is known for the version only'
  },
  text
})

/** JSON Schema of a known bug of a version that is in use. */
const auditedBug = object({
  id: text,
  package: { ...text, description: 'node, or the name of a package' },
  version: { ...text, description: 'the version in use, which has the bug' },
  kind: {
    enum: ['bug', 'trap'],
    description: 'trap: it works as documented, and leaks in the use that `when` describes'
  },
  title: text,
  when: { ...text, description: 'the condition, a clause' },
  diagnoses: { ...array(text), description: 'ids of the diagnoses that it causes' },
  fixedIn: {
    ...nullable('string'),
    description: 'the first newer version without it; null where there is none'
  },
  workaround: nullable('string'),
  thread: { ...text, description: 'address of the public thread' },
  reproducedOn: {
    ...nullable('string'),
    description: 'date of the last run that showed it; null where none did'
  }
})

module.exports = { auditedBug, knownBug }

'use strict'

const { nullable, object, text } = require('../text/json-schema')

/** JSON Schema of a known bug beside a verdict. */
const knownBug = object({
  id: text,
  package: { ...text, description: 'node, or the name of a package' },
  version: { ...text, description: 'the version in use, which has the bug' },
  fixedIn: {
    ...nullable('string'),
    description: 'the first newer version without it; null where there is none'
  },
  thread: { ...text, description: 'address of the public thread' },
  likely: {
    type: 'boolean',
    description: 'whether a suspect of the verdict lies there; else it is known for the version only'
  },
  text
})

module.exports = { knownBug }

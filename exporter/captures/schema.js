'use strict'

const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { kinds } = require('./kinds')

/** JSON Schemas of a capture: the API and the record on disk have the same form. */

const suspects = object({
  of: {
    enum: ['grown bytes', 'allocated bytes', 'busy seconds'],
    description: 'what total and value count'
  },
  total: number,
  sites: {
    ...array(object({
      function: text,
      file: { ...text, description: 'relative to the package of the app, where that can be seen' },
      line: number,
      value: number,
      share: number,
      inlinedIn: {
        ...nullable('string'),
        description: 'the caller whose bytes these are, where this may have been inlined into ' +
          'it; null where it is counted itself'
      },
      via: {
        ...nullable('string'),
        description: 'the package that does it on behalf of this line'
      },
      through: {
        ...array(text),
        description: 'builtin modules, packages and functions of V8 on the way to what is allocated'
      },
      call: { ...nullable('string'), description: 'what blocks' },
      instead: { ...nullable('string'), description: 'what does not' },
      longestSeconds: { ...nullable('number'), description: 'at a stretch' },
      text
    }, ['through'])),
    description: 'worst first'
  }
})

const retainers = object({
  refused: { ...nullable('string'), description: 'why it was not analysed; null where it was' },
  reachableBytes: nullable('number'),
  piles: {
    ...array(object({
      text,
      className: text,
      count: number,
      retainedBytes: { ...number, description: 'what would be freed without them' },
      package: {
        ...nullable('string'),
        description: "whose code holds them; null for the app's own and that of Node.js"
      },
      root: { ...text, description: 'why the holder is alive: promise, timer, listener, module …' },
      path: { ...array(text), description: 'from the root to one of them, a step each' }
    })),
    description: 'of alike objects, largest first'
  }
})

const capture = object({
  id: text,
  kind: { enum: Object.keys(kinds) },
  target: text,
  thread: text,
  pid: number,
  host: nullable('string'),
  node: text,
  startedAtUnixMs: { ...number, description: 'when the isolate started' },
  seconds: number,
  diagnosis: {
    ...nullable('string'),
    description: 'that it was made for by itself; null when somebody asked for it'
  },
  state: { enum: ['running', 'done', 'failed'] },
  error: nullable('string'),
  errorCode: nullable('string'),
  requestedUnixMs: number,
  finishedUnixMs: nullable('number'),
  parts: array(object({ part: text, bytes: number, sha256: text })),
  suspects: {
    anyOf: [suspects, { type: 'null' }],
    description: 'null while it is made, and of a kind that points at no line'
  },
  retainers: {
    anyOf: [retainers, { type: 'null' }],
    description: 'what piles up in a heap_snapshot, and what holds it; null of other kinds'
  }
}, ['retainers'])

module.exports = { capture, suspects }

'use strict'

const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { kinds } = require('./kinds')

/** JSON Schemas of a capture: the API and the record on disk have the same form. */

const packages = {
  ...array(object({ package: text, value: number, share: number })),
  description: 'the same by package, largest first; the name of the app for its own code, node ' +
    'for Node.js itself'
}

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
      package: { ...text, description: 'whose code the line is of' },
      value: number,
      share: number,
      inlinedIn: {
        ...nullable('string'),
        description: 'the caller whose bytes these are, where this may have been inlined into ' +
          'it; null where it is counted itself'
      },
      via: {
        ...nullable('string'),
        description: 'the package that this line calls, and that does the work'
      },
      through: {
        ...array(text),
        description: 'builtin modules, packages and functions of V8 on the way to what is allocated'
      },
      call: { ...nullable('string'), description: 'what blocks' },
      instead: { ...nullable('string'), description: 'what does not' },
      longestSeconds: { ...nullable('number'), description: 'at a stretch' },
      text
    }, ['through', 'package'])),
    description: 'worst first'
  },
  packages
}, ['packages'])

const piles = {
  ...array(object({
    text,
    className: text,
    count: number,
    retainedBytes: { ...number, description: 'what would be freed without them' },
    bufferBytes: { ...number, description: 'memory of Buffers among them' },
    package: {
      ...nullable('string'),
      description: "whose code holds them; null for the app's own and that of Node.js"
    },
    root: { ...text, description: 'why the holder is alive: promise, timer, listener, module …' },
    path: { ...array(text), description: 'from the root to one of them, a step each' }
  }, ['bufferBytes'])),
  description: 'of alike objects, largest first'
}
const refused = {
  ...nullable('string'), description: 'why it was not analysed; null where it was'
}
const sinceUnixMs = {
  ...nullable('number'),
  description: 'when an earlier snapshot was taken: the piles are objects that came since; null ' +
    'without one'
}

/** Holders of a verdict or a death. */
const holders = object({
  captureId: { ...nullable('string'), description: 'of the snapshot; null of one that V8 wrote' },
  file: { ...nullable('string'), description: 'that V8 wrote by itself; null of a capture' },
  atUnixMs: { ...number, description: 'when the snapshot was taken' },
  sinceUnixMs,
  refused,
  piles
})

const retainers = object({
  refused,
  reachableBytes: nullable('number'),
  sinceUnixMs,
  piles,
  packages
}, ['sinceUnixMs', 'packages'])

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
  rule: {
    ...nullable('string'),
    description: 'of captures that it was made by; null when somebody asked for it'
  },
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
  isPartial: {
    type: 'boolean',
    description: 'true if the process ended meanwhile: what it had sent until then'
  },
  shippedUnixMs: {
    ...nullable('number'),
    description: 'when it was sent to --ship-to; null until then'
  },
  suspects: {
    anyOf: [suspects, { type: 'null' }],
    description: 'null while it is made, and of a kind that points at no line'
  },
  retainers: {
    anyOf: [retainers, { type: 'null' }],
    description: 'what piles up in a heap_snapshot, and what holds it; null of other kinds'
  }
}, ['retainers', 'rule', 'isPartial', 'shippedUnixMs'])

module.exports = { capture, holders, retainers, suspects }

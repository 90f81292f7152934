'use strict'

const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { kinds } = require('./kinds')

/** JSON Schemas of a capture: the API and the record on disk have the same form. */

const packages = {
  ...array(object({ package: text, value: number, share: number })),
  description: 'sums by package, largest first; the package is the name of the app for its own ' +
    'code, and node for Node.js itself'
}

const suspects = object({
  of: {
    enum: [
      'grown bytes', 'allocated bytes', 'busy seconds', 'native seconds', 'handler seconds',
      'opening seconds'
    ],
    description: 'unit of total and value; native seconds: time in native code that may retain ' +
      'memory, for a native memory leak without an owner in JavaScript; handler seconds: time in ' +
      'functions that handle data which Node.js reads, for a leak of such data; opening seconds: ' +
      'time in calls that open files, for files that stay open'
  },
  total: number,
  sites: {
    ...array(object({
      function: text,
      file: { ...text, description: 'relative to the package of the app, if it is visible' },
      line: number,
      package: { ...text, description: 'package that contains the line' },
      value: number,
      share: number,
      inlinedIn: {
        ...nullable('string'),
        description: 'caller that V8 counts these bytes for, if the function may have been ' +
          'inlined into it; null otherwise'
      },
      via: {
        ...nullable('string'),
        description: 'package that this line calls, and that does the work'
      },
      through: {
        ...array(text),
        description: 'builtin modules, packages and functions of V8 between this line and the ' +
          'allocation'
      },
      call: {
        ...nullable('string'),
        description: 'what blocks, or the native function that is called'
      },
      instead: { ...nullable('string'), description: 'what does not' },
      longestSeconds: { ...nullable('number'), description: 'in one or more calls in a row' },
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
    retainedBytes: { ...number, description: 'bytes that would be freed without these objects' },
    bufferBytes: { ...number, description: 'part of these bytes that Buffers hold' },
    package: {
      ...nullable('string'),
      description: 'package whose code holds the objects; null for code of the app and of Node.js'
    },
    root: {
      ...text, description: 'reason why the holder is alive: promise, timer, listener, ' +
      'module …'
    },
    path: { ...array(text), description: 'path from the root to one of the objects, one step each' }
  }, ['bufferBytes'])),
  description: 'piles of similar objects, largest first'
}
const refused = {
  ...nullable('string'), description: 'reason why the snapshot was not analysed; null if it was'
}
const sinceUnixMs = {
  ...nullable('number'),
  description: 'time of the earlier snapshot: the piles contain only newer objects; null without ' +
    'an earlier snapshot'
}

/** Holders of a verdict or a death. */
const holders = object({
  captureId: {
    ...nullable('string'), description: "id of the snapshot's capture; null for a " +
    'snapshot that V8 wrote'
  },
  file: { ...nullable('string'), description: 'file that V8 wrote by itself; null for a capture' },
  atUnixMs: { ...number, description: 'time of the snapshot' },
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
  startedAtUnixMs: { ...number, description: 'start time of the isolate' },
  seconds: number,
  rule: {
    ...nullable('string'),
    description: 'name of the rule that started the capture; null for a requested one'
  },
  diagnosis: {
    ...nullable('string'),
    description: 'diagnosis that started the capture; null for a requested one'
  },
  state: { enum: ['running', 'done', 'failed'] },
  error: nullable('string'),
  errorCode: nullable('string'),
  requestedUnixMs: number,
  finishedUnixMs: nullable('number'),
  parts: array(object({ part: text, bytes: number, sha256: text })),
  isPartial: {
    type: 'boolean',
    description: 'true if the process ended during the capture: the parts that it had sent'
  },
  shippedUnixMs: {
    ...nullable('number'),
    description: 'time when it was sent to --ship-to; null before'
  },
  suspects: {
    anyOf: [suspects, { type: 'null' }],
    description: 'null while the capture is made, and for kinds that name no lines'
  },
  retainers: {
    anyOf: [retainers, { type: 'null' }],
    description: 'piles of objects in a heap_snapshot, and their holders; null for other kinds'
  }
}, ['retainers', 'rule', 'isPartial', 'shippedUnixMs'])

module.exports = { capture, holders, retainers, suspects }

'use strict'

const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { holders } = require('../captures/schema')
const { reasons } = require('./reasons')

/** JSON Schemas of a death: the API and the record on disk have the same form. */

const death = object(
  {
    id: text,
    target: text,
    thread: text,
    pid: { type: 'integer' },
    host: nullable('string'),
    node: text,
    startedAtUnixMs: number,
    diedAtUnixMs: { ...number, description: 'time when the exporter noticed the end' },
    lastFrameUnixMs: number,
    reason: { enum: Object.keys(reasons) },
    sure: { enum: ['certain', 'likely', 'possible'] },
    text: { ...text, description: 'one sentence' },
    exitCode: nullable('integer'),
    signal: nullable('string'),
    advice: {
      ...nullable('string'),
      description:
        'advice after the heap ran out, if no verdict gives one; absent in deaths stored by an ' +
          'older exporter'
    },
    suspects: {
      ...nullable('string'),
      description: 'after running out of memory: the lines of code identified by the last heap ' +
        'profile'
    },
    verdict: {
      anyOf: [object({ diagnosis: text, summary: text, fix: text }), { type: 'null' }],
      description: 'verdicts that were confirmed at the death'
    },
    holders: {
      anyOf: [holders, { type: 'null' }],
      description: 'piles in a heap snapshot that V8 wrote before the death, and their holders; ' +
        'null without a snapshot, or while it is analysed'
    }
  },
  ['advice', 'holders']
)

/** End of a command whose processes never reported: explain-exit.js. */
const ending = object({
  reason: { enum: Object.keys(reasons) },
  sure: { enum: ['certain', 'likely', 'possible'] },
  text,
  advice: nullable('string'),
  holders: {
    anyOf: [holders, { type: 'null' }],
    description: 'as in a death with a heap snapshot'
  }
}, ['holders'])

const deathWithMinutes = object({
  death,
  lastMinutes: object({
    secondsBefore: { ...array(number), description: 'before the last frame, oldest first' },
    tracks: { type: 'object', additionalProperties: array(nullable('number')) }
  })
})

module.exports = { ending, death, deathWithMinutes }

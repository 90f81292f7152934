'use strict'

const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { ENDINGS } = require('@memwatch/engine/verdicts/follow-up')

/** JSON Schemas of follow-ups: the API and the records on disk have the same form. */

const outcome = object({
  signal: text, name: text, unit: text, from: number, to: number, measured: number
})

const followUp = object({
  id: text,
  workload: { ...text, description: 'name that the processes of an app share' },
  target: { ...text, description: 'name of the process that runs with the change' },
  thread: text,
  pid: { type: 'integer' },
  diagnosis: text,
  title: text,
  fix: { ...text, description: 'title of the fix' },
  change: { ...text, description: 'the change on one line' },
  advisedUnixMs: number,
  startedAtUnixMs: { ...number, description: 'start of the process with the change' },
  ending: {
    enum: [...ENDINGS, null],
    description: 'null until the process has done as much work as before'
  },
  endedUnixMs: nullable('number'),
  text: { ...text, description: 'one sentence' },
  effectRatio: {
    ...nullable('number'),
    description: 'measured effect divided by the predicted effect, for the first prediction: 1 ' +
      'is as predicted'
  },
  outcomes: {
    ...array(outcome),
    description: 'predicted and measured values, for the load before the change'
  }
})

const texts = array(text)
const map = { type: 'object', additionalProperties: text }
const setup = object({
  nodeOptions: texts,
  execArgv: texts,
  mallocEnv: map,
  libc: text,
  allocator: text,
  allocatorPath: text,
  node: text,
  pointerCompression: { type: 'boolean' },
  memoryLimitBytes: nullable('number'),
  release: nullable('string'),
  parents: array(map)
}, ['allocatorPath'])
const reached = object({ workSeconds: number, ageSeconds: number })
const reading = object({
  values: { type: 'object', additionalProperties: nullable('number') },
  workRatio: nullable('number'),
  allocatedPerSecond: nullable('number')
})
const fix = object({
  title: text,
  change: object({
    flag: text, env: map, dockerfile: text, memoryLimitBytes: number, code: text, note: text
  }, ['flag', 'env', 'dockerfile', 'memoryLimitBytes', 'code', 'note']),
  predicted: array(object({ signal: text, name: text, from: number, to: number, unit: text })),
  risk: text
})

/**
 * Advice is saved to disk, because the next process of a workload may start only while a later
 * exporter runs.
 */
const advice = object({
  id: text,
  workload: text,
  thread: text,
  target: text,
  diagnosis: text,
  title: text,
  atUnixMs: number,
  confirmedAtUnixMs: number,
  fixes: array(fix),
  setup,
  readings: array(reading),
  confirmed: reached,
  levelled: reached
})

module.exports = { advice, followUp }

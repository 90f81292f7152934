'use strict'

const { fieldsOf, integer, isObject, matching, number } = require('../decode/rebuild')
const { plainText } = require('@memwatch/agent/protocol/text-rules')

/**
 * A recording: all messages that an exporter accepted from its agents, as NDJSON. A replay
 * evaluates the messages with the same code as a live exporter.
 *
 *   {"memwatch":"recording","version":1,"command":["node","server.js"]}
 *   {"session":1,"line":{"v":1,"type":"hello",…}}
 *   {"session":1,"line":{"v":1,"type":"frame",…}}
 *   {"session":1,"closed":true}
 *   {"end":{"durationSeconds":61.2,"exit":{"code":0,"signal":null}}}
 *
 * A session is one connection. `line` is a line of the wire protocol, word for word. `closed` marks
 * the end of the connection, with or without a bye. Only recordings of `memwatch run` have `end`. A
 * file whose name ends in .gz is compressed by gzip; other files are plain.
 *
 * @typedef {object} Header
 * @property {'recording'} memwatch
 * @property {number} version
 * @property {string[]} [command] command that `memwatch run` started
 *
 * @typedef {object} End
 * @property {number} durationSeconds
 * @property {{ code: number | null, signal: string | null }} exit
 * @property {Work} [work] work done in a run of `memwatch try`
 *
 * Work done in a run, as its load generator or the app itself reported it.
 * @typedef {object} Work
 * @property {number} [requests] number of requests or jobs that the app counted
 * @property {number} [requestsPerSecond]
 * @property {number} [latencyP99Seconds]
 * @property {number} [failures] number of requests that failed
 */

/** Format version. It changes when an older reader would misread a newer recording. */
const RECORDING_VERSION = 1

/** @param {string} file */
const isCompressed = file => file.endsWith('.gz')

/** Upper bound of stored words of a command. */
const MOST_WORDS = 1000

/**
 * @template T
 * @param {import('../decode/rebuild').Rebuild<T>} rebuild
 * @returns {import('../decode/rebuild').Rebuild<T | null>}
 */
const orNull = rebuild => value => value === null ? null : rebuild(value)

/** @type {import('../decode/rebuild').Rebuild<End>} */
const rebuildEnd = fieldsOf(
  {
    durationSeconds: number,
    exit: fieldsOf({
      code: orNull(integer(2 ** 32, -(2 ** 31))),
      signal: orNull(matching(/^[A-Z0-9+]{1,16}$/))
    })
  },
  {
    work: fieldsOf(
      {},
      { requests: number, requestsPerSecond: number, latencyP99Seconds: number, failures: number }
    )
  }
)

/**
 * Command in the header of an untrusted recording.
 * @param {unknown} command
 * @returns {{ command?: string[] }} part of the header, with plain texts only
 */
const rebuildCommand = command => Array.isArray(command)
  ? { command: command.slice(0, MOST_WORDS).map(word => plainText(String(word))) }
  : {}

/**
 * @param {unknown} item
 * @returns {item is { memwatch: 'recording', version: unknown, command?: unknown }}
 */
const isHeader = item => isObject(item) && item.memwatch === 'recording'

module.exports = { RECORDING_VERSION, isCompressed, isHeader, rebuildCommand, rebuildEnd }

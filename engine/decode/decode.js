'use strict'

const { PROTOCOL_VERSION } = require('@memwatch/agent/protocol/frame')
const { isObject, rebuilds, rebuildValues } = require('./rebuild')

/*
 * Lines between agent and exporter. The fields are in agent/protocol/frame.js.
 *
 * An agent opens one connection per isolate and writes NDJSON lines: one `hello`, one `frame` a
 * second and, if possible, one `bye`. Counters are cumulative since the isolate started, so a lost
 * frame loses no event.
 *
 *   {"v":1,"type":"hello", ...Hello}
 *   {"v":1,"type":"frame","sequence":7,"atUnixMs":1760000000000,"uptimeSeconds":7.1,
 *    "values":{"rssBytes":...,...}}
 *   {"v":1,"type":"bye","sequence":8,"atUnixMs":...,"exitCode":0}
 *
 * An agent executes the `commands` of its hello if it trusts their sender. Without a token it
 * trusts a Unix socket that belongs, with its folder, to the agent's own user or root. With a token
 * each command needs a `proof`, which covers the growing `sequence` and the hello's `nonce`:
 * agent/protocol/proof.js.
 *
 *   {"v":1,"type":"command","id":"...","command":"capture","sequence":3,"proof":"...",
 *    "args":{"kind":"cpu_profile","seconds":5}}
 *   {"v":1,"type":"answer","id":"...", ...Answer}
 *
 * Commands: `look`: a frame now, with all rarely read values. `trim`: such a frame, then malloc
 * returns free memory to the system, by malloc_trim(0) or its nearest equivalent. `capture`:
 * capture/index.js of the agent. `sample_heap`: begins a heap profile that a later `capture`
 * continues. `count_slices`: capture/slices.js. `force_gc`: one full GC, for a reading of the live
 * heap: forced-gc.js.
 *
 * A capture precedes the answer. Each part has its own connection: this line, then bytes to the
 * end.
 *
 *   {"v":1,"type":"capture","id":"...","part":"profile"}
 *
 * A reader ignores unknown fields; a known field of the wrong shape rejects the frame.
 */

/**
 * Reasons to reject a line, in the order of the checks. Each is a label value of
 * memwatch_exporter_lines_rejected_total.
 * @type {readonly ['line_too_long', 'too_many_values', 'not_json', 'not_an_object',
 *   'wrong_version', 'unknown_type', 'invalid_hello', 'hello_missing', 'hello_repeated',
 *   'invalid_answer', 'invalid_capture', 'invalid_frame', 'invalid_field', 'out_of_order',
 *   'too_many_targets', 'identity_in_use', 'too_fast', 'too_much_unfinished', 'overloaded',
 *   'wrong_pod']}
 */
const REJECT_REASONS = Object.freeze([
  'line_too_long',
  'too_many_values',
  'not_json',
  'not_an_object',
  'wrong_version',
  'unknown_type',
  'invalid_hello',
  'hello_missing',
  'hello_repeated',
  'invalid_answer',
  'invalid_capture',
  'invalid_frame',
  'invalid_field',
  'out_of_order',
  'too_many_targets',
  'identity_in_use',
  'too_fast',
  'too_much_unfinished',
  'overloaded',
  'wrong_pod'
])

/**
 * Number of characters above which `decode` counts the values of a line before it parses the line.
 * The longest hello of the lab has 7,800 characters, the longest frame 2,500.
 */
const LONG_LINE = 16_384
/**
 * Upper bound of values in a line. The fullest message of the contract has some 4,000. A line of
 * `[],[],…` has 87,000 in 256 KiB, and takes 4.3 MiB once parsed.
 */
const MOST_VALUES = 8192
const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

/**
 * @typedef {typeof REJECT_REASONS[number]} RejectReason
 * @typedef {{ type: 'hello' } & import('@memwatch/agent/protocol/frame').Hello} HelloMessage
 * @typedef {{ type: 'frame' } & import('@memwatch/agent/protocol/frame').Frame} FrameMessage
 * @typedef {{ type: 'bye', sequence: number, atUnixMs: number, exitCode: number }} ByeMessage
 * @typedef {{ type: 'answer' } & import('@memwatch/agent/protocol/frame').Answer} AnswerMessage
 * @typedef {{ type: 'capture', id: string, part: string }} CaptureMessage begins a connection that
 *   transfers a part of a capture
 * @typedef {HelloMessage | FrameMessage | ByeMessage | AnswerMessage | CaptureMessage} Message
 */

/**
 * @param {RejectReason} reason
 * @returns {{ ok: false, reason: RejectReason }}
 */
const reject = reason => ({ ok: false, reason })

/**
 * Decodes one line into a message, or the reason for its rejection. It never throws: a bad line
 * leads to a result with a reason.
 * @param {string} line
 * @returns {{ ok: true, message: Message } | { ok: false, reason: RejectReason }}
 */
function decode (line) {
  if (line.length > LONG_LINE && countValues(line) > MOST_VALUES) return reject('too_many_values')
  let message
  try {
    message = JSON.parse(line)
  } catch {
    return reject('not_json')
  }
  return check(message)
}

/**
 * Upper bound of the values in a line; separators inside texts count too.
 * @param {string} line of JSON
 */
function countValues (line) {
  let values = 0
  for (let i = 0; i < line.length; i++) {
    const character = line.charCodeAt(i)
    if (character === COMMA || character === BRACKET || character === BRACE) values++
  }
  return values
}

/**
 * Rejection reasons of invalid messages, by type.
 * @type {Record<Message['type'], RejectReason>}
 */
const INVALID = {
  hello: 'invalid_hello',
  capture: 'invalid_capture',
  answer: 'invalid_answer',
  bye: 'invalid_frame',
  frame: 'invalid_frame'
}

/**
 * Checks a parsed line and rebuilds its message, so that the message retains no parsed object.
 * @param {unknown} parsed
 * @returns {{ ok: true, message: Message } | { ok: false, reason: RejectReason }}
 */
function check (parsed) {
  if (!isObject(parsed)) return reject('not_an_object')
  if (parsed.v !== PROTOCOL_VERSION) return reject('wrong_version')
  const { type } = parsed
  if (typeof type !== 'string' || !Object.hasOwn(INVALID, type)) return reject('unknown_type')
  const known = /** @type {Message['type']} */ (type)
  const message = rebuilds[known](parsed)
  if (message === undefined) return reject(INVALID[known])
  message.type = known
  if (known === 'frame') {
    if (!isObject(parsed.values)) return reject('invalid_frame')
    message.values = rebuildValues(parsed.values)
    if (message.values === undefined) return reject('invalid_field')
  }
  return { ok: true, message }
}

module.exports = { decode, check, REJECT_REASONS }

'use strict'

const { PROTOCOL_VERSION, GC_PAUSE_BOUNDS_SECONDS, DELAY_BOUNDS_SECONDS, fields } = require('memwatch/frame')

/**
 * Why a line was not taken, in the order they are checked. Each is a label value of memwatch_exporter_lines_rejected_total.
 * @type {readonly ['line_too_long', 'not_json', 'not_an_object', 'wrong_version', 'unknown_type', 'invalid_hello', 'hello_missing', 'hello_repeated', 'invalid_answer', 'invalid_capture', 'invalid_frame', 'invalid_field', 'out_of_order', 'too_many_targets', 'too_fast', 'too_much_unfinished', 'overloaded', 'wrong_pod']}
 */
const REJECT_REASONS = Object.freeze([
  'line_too_long', 'not_json', 'not_an_object', 'wrong_version', 'unknown_type', 'invalid_hello', 'hello_missing',
  'hello_repeated', 'invalid_answer', 'invalid_capture', 'invalid_frame', 'invalid_field', 'out_of_order', 'too_many_targets', 'too_fast', 'too_much_unfinished',
  'overloaded', 'wrong_pod'
])

/** Who sends more rarely could not be told from who is gone. */
const MAX_INTERVAL_SECONDS = 600
/** A map field keeps at most this many keys, each a short plain name: spaces, GC kinds and resource types are few. */
const MAX_KEYS = 64
const KEY = /^(?!__)[A-Za-z0-9_./:-]{1,64}$/
/** kind/cause of a GC row: two labels. */
const GC_KEY = /^[a-z0-9_]{1,32}\/[a-z0-9_]{1,32}$/

/** @param {unknown} value @returns {value is number} */
const isCount = value => typeof value === 'number' && Number.isFinite(value) && value >= 0
/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
/** @param {unknown} value @param {number} length */
const isCounts = (value, length) => Array.isArray(value) && value.length === length && value.every(isCount)
/** @param {unknown} value @param {number} most */
const isText = (value, most) => typeof value === 'string' && value.length <= most
/** @param {unknown} value */
const isTexts = value => Array.isArray(value) && value.length <= 1000 && value.every(item => isText(item, 4096))

/** @param {unknown} value @param {(item: unknown) => boolean} accepts @param {RegExp} [pattern] of the keys */
function isMap (value, accepts, pattern = KEY) {
  if (!isObject(value)) return false
  const keys = Object.keys(value)
  return keys.length <= MAX_KEYS && keys.every(key => pattern.test(key) && accepts(value[key]))
}

/** @type {Record<import('memwatch/frame').Shape, (value: unknown) => boolean>} */
const shapes = {
  number: isCount,
  counts: value => isMap(value, isCount),
  spaces: value => isMap(value, item => isCounts(item, 4)),
  gc: value => isMap(value, item => Array.isArray(item) && item.length === 4 && item.slice(0, 3).every(isCount) &&
    isCounts(item[3], GC_PAUSE_BOUNDS_SECONDS.length + 1), GC_KEY),
  delay: value => Array.isArray(value) && value.length === 4 && value.slice(0, 3).every(isCount) &&
    isCounts(value[3], DELAY_BOUNDS_SECONDS.length + 1)
}

/** Of each field its check. Without a prototype: a field called constructor is unknown, not a function. @type {Record<string, (value: unknown) => boolean>} */
const shapeOf = Object.assign(Object.create(null), Object.fromEntries(Object.entries(fields).map(([name, { shape }]) => [name, shapes[shape]])))

/** @type {Record<string, (value: unknown) => boolean>} */
const helloFields = {
  agent: value => isText(value, 64),
  pid: isCount,
  threadId: isCount,
  startedAtUnixMs: isCount,
  name: value => isText(value, 128) && value !== '',
  intervalSeconds: value => isCount(value) && value > 0 && value <= MAX_INTERVAL_SECONDS,
  node: value => isText(value, 64),
  v8: value => isText(value, 64),
  platform: value => isText(value, 32),
  arch: value => isText(value, 32),
  libc: value => isText(value, 16),
  allocator: value => isText(value, 16),
  pointerCompression: value => typeof value === 'boolean',
  execArgv: isTexts,
  nodeOptions: isTexts,
  allowedFlags: isTexts,
  mallocEnv: value => isObject(value) && Object.keys(value).length <= MAX_KEYS && Object.values(value).every(text => isText(text, 4096))
}

/** @param {unknown} value */
const isPodName = value => isText(value, 253)
/** @type {Record<string, (value: unknown) => boolean>} */
const podFields = { uid: isPodName, name: isPodName, namespace: isPodName, container: isPodName, injected: value => typeof value === 'boolean' }

/** @type {Record<string, (value: unknown) => boolean>} */
const optionalHelloFields = {
  host: value => isText(value, 255),
  pod: value => isObject(value) && Object.entries(podFields).every(([name, accepts]) => value[name] === undefined || accepts(value[name])),
  allocatorPath: value => isText(value, 4096),
  resourceLimits: value => isMap(value, isCount),
  hostMemoryBytes: isCount,
  startTimeTicks: isCount,
  constrainedBytes: isCount,
  cores: isCount,
  allocatorAccess: value => isText(value, 16),
  commands: isTexts,
  nonce: value => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value)
}

/** @type {Record<string, (value: unknown) => boolean>} */
const optionalAnswerFields = {
  reason: value => isText(value, 64),
  message: value => isText(value, 1024),
  parts: value => isMap(value, isCount),
  predictedBytes: isCount,
  headroomBytes: isCount,
  blockedSeconds: isCount,
  rssBeforeBytes: isCount,
  rssAfterBytes: isCount
}

/** @param {Record<string, unknown>} message */
function isHello (message) {
  return Object.entries(helloFields).every(([name, accepts]) => accepts(message[name])) &&
    Object.entries(optionalHelloFields).every(([name, accepts]) => message[name] === undefined || accepts(message[name]))
}

/** @param {Record<string, unknown>} object @param {readonly string[]} names */
const known = (object, names) => Object.fromEntries(names.filter(name => object[name] !== undefined).map(name => [name, object[name]]))

const knownInHello = ['type', ...Object.keys(helloFields), ...Object.keys(optionalHelloFields)]

/** What is known of a hello, and no more: it is kept for as long as its target lives. @param {Record<string, unknown>} message @returns {any} */
const helloOf = message => ({ ...known(message, knownInHello), ...(message.pod !== undefined && { pod: known(/** @type {Record<string, unknown>} */ (message.pod), Object.keys(podFields)) }) })

/** @param {Record<string, unknown>} message */
function isAnswer (message) {
  return isText(message.id, 64) && typeof message.ok === 'boolean' &&
    Object.entries(optionalAnswerFields).every(([name, accepts]) => message[name] === undefined || accepts(message[name]))
}

/**
 * @typedef {typeof REJECT_REASONS[number]} RejectReason
 * @typedef {{ type: 'hello' } & import('memwatch/frame').Hello} HelloMessage
 * @typedef {{ type: 'frame' } & import('memwatch/frame').Frame} FrameMessage
 * @typedef {{ type: 'bye', sequence: number, atUnixMs: number, exitCode: number }} ByeMessage
 * @typedef {{ type: 'answer' } & import('memwatch/frame').Answer} AnswerMessage
 * @typedef {{ type: 'capture', id: string, part: string }} CaptureMessage begins a connection that brings a part of a capture
 * @typedef {HelloMessage | FrameMessage | ByeMessage | AnswerMessage | CaptureMessage} Message
 */

/** @param {RejectReason} reason @returns {{ ok: false, reason: RejectReason }} */
const reject = reason => ({ ok: false, reason })

/**
 * One line to one message, or the reason why not. Never throws: a bad line is a value.
 * @param {string} line
 * @returns {{ ok: true, message: Message } | { ok: false, reason: RejectReason }}
 */
function decode (line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    return reject('not_json')
  }
  return check(message)
}

/**
 * What a line says, once parsed.
 * @param {unknown} message
 * @returns {{ ok: true, message: Message } | { ok: false, reason: RejectReason }}
 */
function check (message) {
  if (!isObject(message)) return reject('not_an_object')
  if (message.v !== PROTOCOL_VERSION) return reject('wrong_version')
  if (message.type === 'hello') {
    return isHello(message) ? { ok: true, message: helloOf(message) } : reject('invalid_hello')
  }
  if (message.type === 'capture') {
    return isText(message.id, 64) && isText(message.part, 32) ? { ok: true, message: /** @type {any} */ (message) } : reject('invalid_capture')
  }
  if (message.type === 'answer') {
    return isAnswer(message) ? { ok: true, message: /** @type {any} */ (message) } : reject('invalid_answer')
  }
  if (message.type !== 'frame' && message.type !== 'bye') return reject('unknown_type')
  if (!isCount(message.sequence) || !isCount(message.atUnixMs)) return reject('invalid_frame')
  if (message.type === 'bye') {
    return Number.isInteger(message.exitCode) ? { ok: true, message: /** @type {any} */ (message) } : reject('invalid_frame')
  }
  const values = message.values
  if (!isCount(message.uptimeSeconds) || !isObject(values)) return reject('invalid_frame')
  for (const name in values) {
    const accepts = shapeOf[name]
    if (accepts !== undefined && !accepts(values[name])) return reject('invalid_field')
  }
  return { ok: true, message: /** @type {any} */ (message) }
}

module.exports = { decode, check, REJECT_REASONS }

'use strict'

const { createHash } = require('node:crypto')
const { inflateRawSync } = require('node:zlib')
const { PROTOCOL_VERSION, MAX_LINE_BYTES } = require('@memwatch/agent/protocol/frame')
const { evidence: reportedEvidence, severity, state } = require('@memwatch/engine/verdicts/schema')
const { rebuild } = require('../data-folder/contract')
const { holders } = require('../captures/schema')
const { death } = require('../deaths/schema')
const { advice, followUp } = require('../follow-ups/schema')
const { check } = require('@memwatch/engine/decode/decode')
const { ordered } = require('@memwatch/engine/history/history')
const { identityOf } = require('@memwatch/engine/history/identity')
const { Block } = require('@memwatch/engine/history/block')
const { columns, STEPS } = require('@memwatch/engine/history/flight')

/** Digest of the columns. Rows that another version saved with other columns cannot be read. */
const LAYOUT = createHash('sha256')
  .update(JSON.stringify([ordered, columns]))
  .digest('hex')
  .slice(0, 12)

const text = { type: 'string' }
const number = { type: 'number' }
const nullable = { type: ['number', 'null'] }
/**
 * @param {Record<string, object>} properties
 * @param {string[]} [optional]
 */
const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name))
})
/** JSON contains null for a number that was not finite. */
const evidence = object({ ...reportedEvidence.properties, value: nullable, limit: nullable })
const judgement = object({
  state, severity, summary: text, evidence: { type: 'array', items: evidence }, impact: text
}, ['evidence', 'impact', 'severity'])
const settledState = object({
  state: { enum: ['suspected', 'confirmed'] },
  judgement,
  agreed: number,
  confirmedAtSeconds: nullable,
  seenAtSeconds: number
})
/** Upper bound of settled diagnoses of one target: far more than there are diagnoses. */
const MAX_SETTLED = 64

const targetRecord = object({ key: text, name: text, thread: text })
const secondsRecord = object({
  key: text, boot: text, atMs: number, lastSequence: number, firstUptimeSeconds: nullable
}, ['boot'])
const blockRecord = object({
  key: text,
  stepSeconds: { enum: STEPS.map(({ stepSeconds }) => stepSeconds) },
  from: number,
  to: number
})
const endRecord = object({ key: text })
const deathRecord = object({ death })
const explanation = object({ id: text, holders })
const retraction = object({ id: text })

/**
 * Rebuilds a record on disk from its contract. Its content is untrusted: other users may be able to
 * write to the folder, and an earlier exporter may have had a bug.
 * @param {{ meta: unknown, bytes: Buffer }} record
 * @param {string} family
 * @returns {any} the record with its type; type `other` for a record saved by another version,
 *   which is ignored; undefined if it does not fit
 */
function decodeRecord ({ meta, bytes }, family) {
  if (typeof meta !== 'object' || meta === null) return undefined
  const { type, layout } = /** @type {Record<string, unknown>} */ (meta)
  if (typeof type !== 'string') return undefined
  const decode = Object.hasOwn(decoders, type) ? decoders[type] : undefined
  if (!decode || (decode.hasLayout && layout !== LAYOUT)) return { type: 'other' }
  const rebuilt = rebuild(decode.schema, meta)
  const decoded = rebuilt && decode.complete(rebuilt, bytes, meta)
  if (!decoded || (type === 'block' && family !== `step${decoded.stepSeconds}`)) return undefined
  return { ...decoded, type }
}

/**
 * @type {Record<string, { schema: object, hasLayout?: boolean, complete: (rebuilt: any, bytes:
 *   Buffer, meta: any) => any }>}
 */
const decoders = {
  target: {
    schema: targetRecord,
    hasLayout: true,
    complete: (record, bytes) => {
      const hello = decodeHello(bytes)
      return hello && identityOf(hello) === record.key ? { ...record, hello } : undefined
    }
  },
  seconds: {
    schema: secondsRecord,
    hasLayout: true,
    complete: (record, bytes, { settled }) => {
      const states = decodeSettled(settled)
      const until = lastTime(bytes)
      if (!states || until === undefined || record.lastSequence < 0) return undefined
      return {
        ...record,
        firstUptimeSeconds: record.firstUptimeSeconds ?? NaN,
        settled: states,
        until
      }
    }
  },
  end: { schema: endRecord, complete: record => record },
  block: {
    schema: blockRecord,
    hasLayout: true,
    complete: record => (record.from <= record.to ? record : undefined)
  },
  death: { schema: deathRecord, complete: record => record },
  explained: { schema: explanation, complete: record => record },
  retracted: { schema: retraction, complete: record => record },
  advised: {
    schema: object({ advice }),
    complete: record => isKnown(record.advice.diagnosis) ? record : undefined
  },
  followed: {
    schema: object({ followUp }),
    complete: record => isKnown(record.followUp.diagnosis) ? record : undefined
  }
}

/**
 * The id of a diagnosis is also a label of metrics.
 * @param {string} id
 */
function isKnown (id) {
  const { diagnoses } = require('@memwatch/engine/diagnoses/index')
  return diagnoses.some(diagnosis => diagnosis.id === id)
}

/**
 * @param {Buffer} bytes
 * @returns {import('@memwatch/agent/protocol/frame').Hello | undefined}
 */
function decodeHello (bytes) {
  try {
    const hello = JSON.parse(inflateRawSync(bytes, { maxOutputLength: MAX_LINE_BYTES }).toString())
    const checked = check({ ...hello, v: PROTOCOL_VERSION, type: 'hello' })
    return checked.ok ? /** @type {any} */ (checked.message) : undefined
  } catch {
    return undefined
  }
}

/**
 * @param {unknown} settled
 * @returns {import('@memwatch/engine/verdicts/settle').Settled | undefined}
 */
function decodeSettled (settled) {
  if (!Array.isArray(settled) || settled.length > MAX_SETTLED) return undefined
  const states = new Map()
  for (const entry of settled) {
    const [id, state] = Array.isArray(entry) ? entry : []
    const rebuilt = typeof id === 'string' ? rebuild(settledState, state) : undefined
    if (rebuilt === undefined) return undefined
    const { evidence } = rebuilt.judgement
    const known = evidence?.filter((/** @type {any} */ { value, limit }) => value !== null && limit !== null)
    const judgement = evidence ? { ...rebuilt.judgement, evidence: known } : rebuilt.judgement
    states.set(id, { ...rebuilt, judgement, confirmedAtSeconds: rebuilt.confirmedAtSeconds ?? NaN })
  }
  return states
}

/**
 * @param {Buffer} bytes of a record of type `seconds`
 * @returns {number | undefined} uptime of the last row; undefined if the bytes are not a block
 */
function lastTime (bytes) {
  try {
    return Block.unpack(bytes, ordered.length).times.at(-1)
  } catch {
    return undefined
  }
}

module.exports = { decodeRecord, LAYOUT }

'use strict'

const { crc32 } = require('node:zlib')

/**
 * A record of a segment: its description and bytes.
 *
 *   length of the body, 4 bytes, little endian
 *   CRC-32 of the body, 4 bytes
 *   body: length of the JSON, 4 bytes; JSON; bytes
 *
 * @typedef {{ type: string } & Record<string, unknown>} RecordMeta
 *
 * @typedef {{ meta: any, bytes: Buffer, offset: number, length: number }} FoundRecord offset and
 *   length of the whole record; meta: the parsed JSON, unchecked; undefined if it is not valid JSON
 */

const HEAD_BYTES = 8
/** Upper bound of a valid body length. */
const MAX_BODY_BYTES = 64 * 2 ** 20
/**
 * Upper bound of the JSON's length. The longest JSON belongs to a death, with sentences of a few
 * kilobytes. Parsed JSON may take twenty times its length in memory.
 */
const MAX_JSON_BYTES = 2 ** 18

/**
 * @param {RecordMeta} meta
 * @param {Buffer} [bytes]
 * @returns {Buffer}
 */
function packRecord (meta, bytes = Buffer.alloc(0)) {
  const json = Buffer.from(JSON.stringify(meta))
  const body = Buffer.concat([Buffer.alloc(4), json, bytes])
  body.writeUInt32LE(json.length, 0)
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(body.length, 0)
  head.writeUInt32LE(crc32(body), 4)
  return Buffer.concat([head, body])
}

/**
 * Unpacks the records of a segment up to the first damaged one. After it, no start of a record can
 * be found.
 * @param {Buffer} segment
 * @returns {{ records: FoundRecord[], tornBytes: number }} tornBytes: number of unreadable bytes
 */
function unpackRecords (segment) {
  /** @type {FoundRecord[]} */
  const records = []
  let offset = 0
  while (offset < segment.length) {
    const record = recordAt(segment, offset)
    if (!record) break
    records.push(record)
    offset += record.length
  }
  return { records, tornBytes: segment.length - offset }
}

/**
 * @param {Buffer} segment
 * @param {number} offset
 * @returns {FoundRecord | undefined}
 */
function recordAt (segment, offset) {
  if (offset + HEAD_BYTES > segment.length) return undefined
  const length = segment.readUInt32LE(offset)
  const body = segment.subarray(offset + HEAD_BYTES, offset + HEAD_BYTES + length)
  if (
    length < 4 ||
    length > MAX_BODY_BYTES ||
    body.length < length ||
    crc32(body) !== segment.readUInt32LE(offset + 4)
  ) { return undefined }
  const jsonLength = body.readUInt32LE(0)
  return {
    meta: metaOf(body.subarray(4, 4 + jsonLength), jsonLength),
    bytes: body.subarray(4 + jsonLength),
    offset,
    length: HEAD_BYTES + length
  }
}

/**
 * @param {Buffer} json
 * @param {number} length expected length
 * @returns {any}
 */
function metaOf (json, length) {
  if (json.length < length || length > MAX_JSON_BYTES) return undefined
  try {
    return JSON.parse(json.toString('utf8'))
  } catch {
    return undefined
  }
}

module.exports = { packRecord, unpackRecords }

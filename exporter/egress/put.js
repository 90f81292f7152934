'use strict'

const { pipeline } = require('node:stream/promises')
const { ExactLength } = require('./exact-length')

/** Time without progress after which a request fails. */
const IDLE_MS = 30_000
/** Time limit of a request. */
const MOST_MS = 900_000
/** Upper bound of bytes read from an answer to a refused request, for the error code in it. */
const MOST_ANSWER_BYTES = 4096
/** 4xx statuses that are worth a retry; credentials may have been replaced by then. */
const WORTH_A_RETRY = new Set([401, 403, 408, 425, 429])

/** Error for a request that the server refused. */
class RefusedError extends Error {
  /**
   * @param {number} status
   * @param {string} reason the server's error code; may be empty
   */
  constructor (status, reason) {
    super(`it answered ${status}${reason && ` ${reason}`}`)
    /** True if another attempt would fail the same way. */
    this.isFinal = status < 500 && !WORTH_A_RETRY.has(status) && reason !== 'RequestTimeout'
  }
}

/**
 * PUTs an object. Redirects are refused, so that body and credentials go only to the named server.
 * @param {URL} url
 * @param {object} options
 * @param {Record<string, string>} options.headers
 * @param {import('./send').Body} options.body
 * @param {AbortSignal} options.signal
 * @param {number} [options.idleMs]
 * @returns {Promise<void>}
 * @throws {RefusedError} if the server refuses
 * @throws {Error} on an error of the network, or after the time limits
 */
async function put (url, { headers, body, signal, idleMs = IDLE_MS }) {
  const source = body.open()
  const { request } = url.protocol === 'https:' ? require('node:https') : require('node:http')
  const within = AbortSignal.any([signal, AbortSignal.timeout(MOST_MS)])
  const outgoing = request(url, {
    method: 'PUT',
    agent: false,
    headers: {
      'Content-Type': body.mediaType,
      'Content-Length': String(body.bytes),
      'User-Agent': 'memwatch',
      ...headers
    }
  })
  outgoing.setTimeout(idleMs, () => {
    outgoing.destroy(new Error(`no progress for ${idleMs / 1000} s`))
  })
  /** @type {Promise<import('node:http').IncomingMessage>} */
  const answered = new Promise((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.once('error', reject)
    outgoing.once('close', () => reject(new Error('the connection was closed')))
  })
  const length = new ExactLength(body.bytes)
  const sent = pipeline(source, chunks => length.pass(chunks), outgoing, { signal: within })
  try {
    // A server that refuses may close the connection before it has read the body: its answer
    // explains more than the error.
    const failed = sent.then(() => answered, error => answered.catch(() => { throw error }))
    const answer = await Promise.race([answered, failed])
    const { statusCode: status = 0 } = answer
    if (status < 200 || status > 299) throw new RefusedError(status, await readReason(answer))
    // The answer may arrive before the stream has recorded its own end.
    if (!length.isComplete) throw new Error(`it answered ${status} before all bytes were sent`)
  } catch (error) {
    // The request only reports a closed connection; the real cause is the failed length check.
    throw length.failure ?? error
  } finally {
    outgoing.destroy()
  }
}

/**
 * @param {import('node:http').IncomingMessage} answer
 * @returns {Promise<string>} code of an S3 error, such as SignatureDoesNotMatch; empty without one
 */
async function readReason (answer) {
  let text = ''
  try {
    for await (const chunk of answer.setEncoding('latin1')) {
      text += chunk
      if (text.length > MOST_ANSWER_BYTES) break
    }
  } catch {} // The status is known anyway.
  return /<Code>(\w{1,64})<\/Code>/.exec(text)?.[1] ?? ''
}

module.exports = { put }

'use strict'

const { createOtlpHttpExportDelegate } = require('@memwatch/otlp')

/**
 * Time after the timeout at which a request is cut off. The timeout itself covers only silence, and
 * a receiver that answers byte by byte must not block the exporter forever.
 */
const GRACE_MS = 1000
/** HTTP statuses 4xx that are worth another attempt. */
const WORTH_A_RETRY = new Set([408, 425, 429])

/**
 * Outcome of one request. final: true if the receiver will never accept the request.
 * @typedef {{ outcome: 'delivered' | 'rejected', message?: string } | { outcome: 'failed', final:
 *   boolean, message: string }} Sent
 */

/**
 * Sends requests of one signal, one at a time. Retries are made by OpenTelemetry's code, and only
 * within the timeout.
 * @template Response
 */
class Sender {
  #http
  #delegate
  /** @type {import('node:http').Agent | undefined} */
  #agent
  /**
   * Text about the part of the current request that the receiver rejected.
   * @type {string | undefined}
   */
  #refusal

  /**
   * @param {object} options
   * @param {import('./settings').HttpOptions} options.http
   * @param {(bytes: Uint8Array) => { partialSuccess?: { errorMessage?: string, rejectedDataPoints?:
   *   number, rejectedLogRecords?: number } }} options.readAnswer
   */
  constructor ({ http, readAnswer }) {
    this.#http = http
    this.#delegate = createOtlpHttpExportDelegate(
      {
        ...http,
        agentFactory: async protocol => (this.#agent = await http.agentFactory(protocol))
      },
      {
        /**
         * @param {Uint8Array[]} parts whole requests: protobuf merges repeated fields, so their
         *   concatenated bytes are one request
         */
        serializeRequest: parts => Buffer.concat(parts),
        deserializeResponse: bytes => {
          const answer = readAnswer(bytes)
          const {
            rejectedDataPoints = 0,
            rejectedLogRecords = 0,
            errorMessage = ''
          } = answer.partialSuccess ?? {}
          if (rejectedDataPoints + rejectedLogRecords > 0) {
            this.#refusal = `${rejectedDataPoints + rejectedLogRecords} were rejected: ` +
              `${errorMessage}`
          }
          return answer
        }
      },
      'otlp_http_metric_exporter',
      { name: 'metric_data_point', countItems: parts => parts.length },
      undefined
    )
  }

  /**
   * @param {Uint8Array[]} parts
   * @returns {Promise<Sent>} outcome; the promise never rejects
   */
  send (parts) {
    this.#refusal = undefined
    return new Promise(resolve => {
      // Closing the connection ends the request. A request that was already answered by 200 was
      // accepted.
      const deadline = setTimeout(
        () => this.#agent?.destroy(),
        this.#http.timeoutMillis + GRACE_MS
      ).unref()
      this.#delegate.export(parts, ({ code, error }) => {
        clearTimeout(deadline)
        if (code === 0) {
          return resolve({
            outcome: this.#refusal ? 'rejected' : 'delivered',
            message: this.#refusal
          })
        }
        const status = Number(/** @type {{ code?: number } | undefined} */ (error)?.code)
        resolve({
          outcome: 'failed',
          final: status >= 400 && status < 500 && !WORTH_A_RETRY.has(status),
          message: status > 0 ? `it answered ${status}` : error?.message ?? 'unknown'
        })
      })
    })
  }

  /** Stops; running requests are abandoned. */
  stop () {
    this.#agent?.destroy()
  }
}

module.exports = { Sender }

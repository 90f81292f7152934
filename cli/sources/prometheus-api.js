'use strict'

const { SourceError } = require('./define-source')

const TIMEOUT_MS = 60_000

/**
 * @typedef {{ metric: Record<string, string>, values: [unixSeconds: number, value: string][] }}
 *   Series
 */

/** The HTTP API of a Prometheus, or of a compatible server: Thanos, Mimir, VictoriaMetrics. */
class PrometheusApi {
  #base
  /** @type {Record<string, string>} */
  #headers = {}

  /**
   * @param {string} url its user and password become Basic authorization
   * @throws {SourceError}
   */
  constructor (url) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new SourceError(
        `--prometheus: expected a URL such as http://localhost:9090, got ${JSON.stringify(url)}`
      )
    }
    const base = new URL(url)
    if (base.username) {
      this.#headers.authorization = `Basic ${Buffer.from(`${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`).toString('base64')}`
    }
    base.username = base.password = ''
    this.#base = base.href.replace(/\/$/, '')
  }

  /**
   * The samples as they were scraped.
   * @param {string} selector of series
   * @param {number} fromUnixSeconds not of it
   * @param {number} toUnixSeconds
   * @returns {Promise<Series[]>}
   * @throws {SourceError}
   */
  async samples (selector, fromUnixSeconds, toUnixSeconds) {
    return this.#query(
      `${selector}[${Math.max(1, Math.round((toUnixSeconds - fromUnixSeconds) * 1000))}ms]`,
      toUnixSeconds,
      'matrix'
    )
  }

  /**
   * The labels of the series that there were.
   * @param {string} selector
   * @param {number} sinceSeconds
   * @param {number} untilUnixSeconds
   * @returns {Promise<Record<string, string>[]>}
   * @throws {SourceError}
   */
  async labels (selector, sinceSeconds, untilUnixSeconds) {
    return (
      await this.#query(
        `last_over_time(${selector}[${Math.ceil(sinceSeconds)}s])`,
        untilUnixSeconds,
        'vector'
      )
    ).map(({ metric }) => metric)
  }

  /**
   * @param {string} query
   * @param {number} time
   * @param {'matrix' | 'vector'} type
   * @returns {Promise<any[]>}
   */
  async #query (query, time, type) {
    const body = new URLSearchParams({ query, time: String(time) })
    let response
    let answer
    try {
      response = await fetch(`${this.#base}/api/v1/query`, {
        method: 'POST',
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS)
      })
      answer = await response.text()
    } catch (error) {
      const { message, cause } = /** @type {Error & { cause?: Error & { code?: string } }} */ (error)
      throw new SourceError(
        `--prometheus: cannot reach ${this.#base}: ${cause?.code ?? cause?.message ?? message}`
      )
    }
    let parsed
    try {
      parsed = JSON.parse(answer)
    } catch {}
    if (parsed?.status === 'success' && parsed.data?.resultType === type) return parsed.data.result
    if (parsed?.error) {
      throw new SourceError(
        `--selector: ${this.#base} rejected ${query}: ${String(parsed.error).slice(0, 300)}`
      )
    }
    throw new SourceError(
      `--prometheus: expected metrics, got status ${response.status} from ${this.#base}; is it a ` +
        'Prometheus?'
    )
  }
}

module.exports = { PrometheusApi }

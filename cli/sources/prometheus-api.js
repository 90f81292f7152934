'use strict'

const { SourceError } = require('./define-source')

const TIMEOUT_MS = 60_000
/** Upper bound of characters of an error that are shown. */
const MOST_ERROR_LENGTH = 300

/**
 * @typedef {{ metric: Record<string, string>, values: [unixSeconds: number, value: string][] }}
 *   Series
 */

/** HTTP API of Prometheus, or of a compatible server: Thanos, Mimir, VictoriaMetrics. */
class PrometheusApi {
  #base
  /** @type {Record<string, string>} */
  #headers = {}
  #timeoutMs
  /** The server's warnings that an answer is not complete. @type {Set<string>} */
  warnings = new Set()

  /**
   * @param {string} url URL; user and password in it become Basic authorization
   * @param {object} [options]
   * @param {string} [options.token] bearer token, which replaces the password
   * @param {string} [options.tenant] tenant of Mimir or Cortex
   * @param {number} [options.timeoutMs] time limit of an answer
   * @throws {SourceError}
   */
  constructor (url, { token, tenant, timeoutMs = TIMEOUT_MS } = {}) {
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
    if (token) this.#headers.authorization = `Bearer ${token}`
    if (tenant) this.#headers['x-scope-orgid'] = tenant
    this.#timeoutMs = timeoutMs
  }

  /** The URL without user and password. */
  get url () {
    return this.#base
  }

  /**
   * Values of a query at one moment.
   * @param {string} query
   * @param {number} unixSeconds
   * @returns {Promise<{ metric: Record<string, string>, value: number }[]>}
   * @throws {SourceError}
   */
  async values (query, unixSeconds) {
    return (await this.at(query, unixSeconds)).map(({ metric, value }) => ({
      metric,
      value: Number(value[1])
    }))
  }

  /**
   * Returns the samples of series as Prometheus scraped them.
   * @param {string} selector selector of the series
   * @param {number} fromUnixSeconds start of the time range, exclusive
   * @param {number} toUnixSeconds
   * @returns {Promise<Series[]>}
   * @throws {SourceError}
   */
  async samples (selector, fromUnixSeconds, toUnixSeconds) {
    return this.#query(
      `${selector}[${Math.max(1, Math.round((toUnixSeconds - fromUnixSeconds) * 1000))}ms]`,
      'query',
      { time: String(toUnixSeconds) },
      'matrix'
    )
  }

  /**
   * Values of a query at equal steps.
   * @param {string} query
   * @param {{ fromUnixSeconds: number, toUnixSeconds: number, stepSeconds: number }} span time
   *   range of at most 11,000 steps, the limit of Prometheus
   * @returns {Promise<Series[]>}
   * @throws {SourceError}
   */
  async range (query, { fromUnixSeconds, toUnixSeconds, stepSeconds }) {
    const parameters = {
      start: String(fromUnixSeconds), end: String(toUnixSeconds), step: String(stepSeconds)
    }
    return this.#query(query, 'query_range', parameters, 'matrix')
  }

  /**
   * Values of a query at one moment.
   * @param {string} query
   * @param {number} atUnixSeconds
   * @returns {Promise<{ metric: Record<string, string>, value: [number, string] }[]>}
   * @throws {SourceError}
   */
  async at (query, atUnixSeconds) {
    return this.#query(query, 'query', { time: String(atUnixSeconds) }, 'vector')
  }

  /**
   * Labels of the series that existed in a time range.
   * @param {string} selector
   * @param {number} sinceSeconds
   * @param {number} untilUnixSeconds
   * @returns {Promise<Record<string, string>[]>}
   * @throws {SourceError}
   */
  async labels (selector, sinceSeconds, untilUnixSeconds) {
    const query = `last_over_time(${selector}[${Math.ceil(sinceSeconds)}s])`
    return (await this.at(query, untilUnixSeconds)).map(({ metric }) => metric)
  }

  /**
   * @param {string} query
   * @param {'query' | 'query_range'} route
   * @param {Record<string, string>} parameters
   * @param {'matrix' | 'vector'} type
   * @returns {Promise<any[]>}
   */
  async #query (query, route, parameters, type) {
    const body = new URLSearchParams({ query, ...parameters })
    let response
    let answer
    try {
      response = await fetch(`${this.#base}/api/v1/${route}`, {
        method: 'POST',
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(this.#timeoutMs)
      })
      answer = await response.text()
    } catch (error) {
      const { name, message, cause } = /** @type {Error & { cause?: Error & { code?: string } }} */ (error)
      if (name === 'TimeoutError') {
        throw new SourceError(
          `--prometheus: ${this.#base} did not answer within ${this.#timeoutMs / 1000} s`
        )
      }
      throw new SourceError(
        `--prometheus: cannot reach ${this.#base}: ${cause?.code ?? cause?.message ?? message}`
      )
    }
    let parsed
    try {
      parsed = JSON.parse(answer)
    } catch {}
    if (parsed?.status === 'success' && parsed.data?.resultType === type) {
      for (const warning of parsed.warnings ?? []) {
        this.warnings.add(String(warning).slice(0, MOST_ERROR_LENGTH))
      }
      return parsed.data.result
    }
    if (response.status === 401 || response.status === 403) {
      throw new SourceError(
        `--prometheus: ${this.#base} requires other credentials: it answered ${response.status}`
      )
    }
    if (parsed?.error) {
      const reason = String(parsed.error).slice(0, MOST_ERROR_LENGTH)
      throw new SourceError(
        parsed.errorType === 'bad_data'
          ? `--selector: ${this.#base} rejected ${query}: ${reason}`
          : `--prometheus: ${this.#base} could not answer ${query}: ${reason}`
      )
    }
    throw new SourceError(
      `--prometheus: expected metrics, got status ${response.status} from ${this.#base}; is it a ` +
        'Prometheus?'
    )
  }
}

module.exports = { PrometheusApi }

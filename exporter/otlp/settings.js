'use strict'

const { DiagLogLevel, convertLegacyHttpOptions, diag } = require('@memwatch/otlp')
const { version } = require('../package.json')

/** Default interval between exports, as in OpenTelemetry. */
const EVERY_MS = 60_000
/** Shortest interval between exports: agents send one frame a second. */
const LEAST_MS = 1000

/**
 * Instruments that are sent as deltas, by the preference for temporality.
 * @type {Record<string, { sums: boolean, histograms: boolean }>}
 */
const DELTAS = {
  cumulative: { sums: false, histograms: false },
  delta: { sums: true, histograms: true },
  // Observable instruments are cumulative here, which needs no memory.
  lowmemory: { sums: false, histograms: true }
}

/**
 * @typedef {ReturnType<typeof convertLegacyHttpOptions>} HttpOptions address, headers, timeout,
 *   compression, certificates
 */

/**
 * Settings of `--otlp` and of OpenTelemetry's own variables. Headers, timeouts, compression and
 * certificates come from these variables only.
 * @param {string} to an address, or `env`
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{ metrics?: HttpOptions, logs?: HttpOptions, everyMs: number, deltas: { sums: boolean,
 *   histograms: boolean }, problems: string[] }} problems: sentences about values that cannot be
 *   used
 */
function readSettings (to, env = process.env) {
  /** @type {string[]} */
  const problems = []
  // After a mistake in a variable, OpenTelemetry continues with its default, and reports the
  // mistake only to this logger.
  const say = (/** @type {string} */ text) => { problems.push(text) }
  const logger = { error: say, warn: say, info () {}, debug () {}, verbose () {} }
  diag.setLogger(logger, DiagLogLevel.WARN)
  /**
   * @param {string} signal
   * @param {string} path
   */
  const http = (signal, path) => convertLegacyHttpOptions({
    ...(to !== 'env' && { url: `${to.replace(/\/$/, '')}/${path}` }),
    userAgent: `memwatch/${version}`,
    // Each signal has one running request. The limit is 2, because OpenTelemetry removes the
    // previous request only a moment after its answer.
    concurrencyLimit: 2
  }, signal, path, { 'Content-Type': 'application/x-protobuf' })
  const everyMs = Number(env.OTEL_METRIC_EXPORT_INTERVAL || EVERY_MS)
  const preference = (
    env.OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE || 'cumulative'
  ).toLowerCase()
  if (!(everyMs >= LEAST_MS)) {
    say(
      `OTEL_METRIC_EXPORT_INTERVAL: expected at least ${LEAST_MS} ms, got ` +
        `${env.OTEL_METRIC_EXPORT_INTERVAL}`
    )
  }
  if (!DELTAS[preference]) {
    say(
      'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: expected one of ' +
        `${Object.keys(DELTAS).join(', ')}, got ${preference}`
    )
  }
  const settings = {
    ...(env.OTEL_METRICS_EXPORTER !== 'none' && { metrics: http('METRICS', 'v1/metrics') }),
    ...(env.OTEL_LOGS_EXPORTER !== 'none' && { logs: http('LOGS', 'v1/logs') }),
    everyMs: everyMs >= LEAST_MS ? everyMs : EVERY_MS,
    deltas: DELTAS[preference] ?? DELTAS.cumulative,
    problems
  }
  diag.disable()
  return settings
}

module.exports = { readSettings }

'use strict'

/** Variables with the address of telemetry, the more specific ones first. */
const ENDPOINTS = [
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
  'OTEL_EXPORTER_OTLP_ENDPOINT'
]
const PROTOCOLS = [
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL',
  'OTEL_EXPORTER_OTLP_LOGS_PROTOCOL'
]

/** Optional package that installs OpenTelemetry's packages. */
const PACKAGE = '@memwatch/otlp'

function hasPackage () {
  try {
    return Boolean(require.resolve(PACKAGE))
  } catch {
    return false
  }
}

/** @param {string} text */
const isHttp = text => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/**
 * The value of `--otlp`: empty, an address to which /v1/metrics and /v1/logs are appended, or
 * `env`. The OTEL_ variables alone enable nothing: they are meant for the app, and its sidecar or a
 * shell inherits them. They often name a gRPC port, which memwatch cannot use, and exported series
 * cost money.
 * @param {string} text
 * @param {NodeJS.ProcessEnv} env
 * @returns {string}
 * @throws {Error} if memwatch cannot send to this address
 */
function readOtlp (text, env) {
  if (text === '') return text
  if (!hasPackage()) throw new Error(`the package ${PACKAGE} is missing; run npm install ${PACKAGE}`)
  if (text === 'env') {
    for (const name of ENDPOINTS) {
      if (env[name] && !isHttp(env[name])) {
        throw new Error(`${name}: expected a URL such as http://collector:4318`)
      }
    }
    for (const name of PROTOCOLS) {
      if (env[name] && env[name] !== 'http/protobuf') {
        throw new Error(
          `${name}: expected http/protobuf, the only supported protocol (usually port 4318), got ` +
            JSON.stringify(env[name])
        )
      }
    }
    return text
  }
  // The error does not quote the value, which may contain a secret.
  if (!isHttp(text)) throw new Error('expected env or a URL such as http://collector:4318')
  const { username, password, search } = new URL(text)
  if (username || password || search) {
    throw new Error(
      'expected a URL without credentials and query, because other users can see it; set ' +
        'OTEL_EXPORTER_OTLP_HEADERS instead'
    )
  }
  return text
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} variable that `--otlp env` would use; undefined without one
 */
const unusedEndpoint = env => ENDPOINTS.find(name => env[name])

module.exports = { readOtlp, unusedEndpoint }

'use strict'

/** @typedef {import('@memwatch/engine/recording/format').Work} Work */

/**
 * Work reported by a load generator: autocannon's JSON (-j) or JSON of the same shape, or the text
 * of wrk (--latency) or hey.
 * @param {string} output stdout of the load generator
 * @returns {Work | undefined} undefined if nothing is recognised
 */
function workOfLoad (output) {
  const json = lastJson(output)
  if (json) return ofAutocannon(json)
  const requestsPerSecond = number(/Requests\/sec:\s+([\d.]+)/, output)
  if (requestsPerSecond === undefined) return undefined
  const [, amount, unit] = /^\s*99%(?: in)?\s+([\d.]+)\s*(us|ms|s|secs)\s*$/m.exec(output) ?? []
  return withoutUndefined({
    requestsPerSecond,
    requests: number(/(\d+) requests in /, output),
    latencyP99Seconds:
      amount === undefined ? undefined : Number(amount) * ({ us: 1e-6, ms: 1e-3 }[unit] ?? 1)
  })
}

/**
 * Work that an app reports on the last line of its stdout, as JSON with a number of `requests`.
 * @param {string} output
 * @returns {Work | undefined}
 */
function workOfApp (output) {
  const requests = lastJson(output)?.requests
  return typeof requests === 'number' && requests > 0 ? { requests } : undefined
}

/**
 * @param {any} json
 * @returns {Work | undefined} work; autocannon's latency is in milliseconds
 */
function ofAutocannon ({ requests, latency, errors, non2xx }) {
  const work = withoutUndefined({
    requests: finite(requests?.total),
    requestsPerSecond: finite(requests?.average),
    latencyP99Seconds: finite(latency?.p99) === undefined ? undefined : latency.p99 / 1000,
    failures:
      finite(errors) === undefined && finite(non2xx) === undefined
        ? undefined
        : (finite(errors) ?? 0) + (finite(non2xx) ?? 0)
  })
  return Object.keys(work).length > 0 ? work : undefined
}

/**
 * Parses the last line that is a JSON object, or the whole text.
 * @param {string} output
 * @returns {any}
 */
function lastJson (output) {
  for (const text of [output, output.trimEnd().split('\n').at(-1) ?? '']) {
    try {
      const json = JSON.parse(text)
      if (typeof json === 'object' && json !== null) return json
    } catch {} // The output is not JSON. It may be text of wrk or hey.
  }
}

/** @param {unknown} value */
const finite = value => typeof value === 'number' && Number.isFinite(value) ? value : undefined
/**
 * @param {RegExp} pattern
 * @param {string} text
 */
const number = (pattern, text) => finite(Number(pattern.exec(text)?.[1] ?? NaN))
/**
 * @param {Record<string, number | undefined>} work
 * @returns {Work}
 */
const withoutUndefined = work =>
  Object.fromEntries(Object.entries(work).filter(([, value]) => value !== undefined))

module.exports = { workOfLoad, workOfApp }

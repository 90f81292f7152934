'use strict'

const http = require('node:http')
const path = require('node:path')
const { gunzipSync } = require('node:zlib')
const { once } = require('node:events')
const protobuf = require('protobufjs')

const schema = protobuf.loadSync(path.join(__dirname, 'otlp.proto'))
const MESSAGES = { '/v1/metrics': 'otlp.ExportMetrics', '/v1/logs': 'otlp.ExportLogs' }

/** @param {any} value AnyValue */
const plain = value =>
  value?.arrayValue ? value.arrayValue.values.map(plain) : value && Object.values(value)[0]
/** @param {any[]} attributes */
const plainAttributes = (attributes = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))

/**
 * A receiver of OTLP over HTTP that records its requests, decoded by protobufjs.
 *
 * @typedef {object} Point
 * @property {Record<string, any>} attributes
 * @property {number} startUnixMs
 * @property {number} unixMs
 * @property {number} [value]
 * @property {number} [count]
 * @property {number} [sum]
 * @property {number[]} [buckets]
 * @property {number[]} [bounds]
 * @typedef {{ name: string, unit: string, kind: 'gauge' | 'sum' | 'histogram', monotonic: boolean,
 *   temporality?: string, points: Point[] }} Metric
 * @typedef {{ path: string, headers: import('node:http').IncomingHttpHeaders, bytes: number,
 *   resources: { attributes: Record<string, any>, scope: any, metrics: Metric[], logs: any[] }[] }}
 *   Received
 */
async function startOtlpReceiver () {
  /** @type {Received[]} */
  const received = []
  /**
   * Answers to the next requests: a status or a function; later requests get 200.
   * @type {(number | ((response: http.ServerResponse) => void))[]}
   */
  const answers = []
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const url = String(request.url)
    const message = MESSAGES[Object.keys(MESSAGES).find(end => url.endsWith(end)) ?? '']
    const answer = answers.shift() ?? 200
    if (message) {
      const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
      /** @type {Received['resources'] | undefined} */
      let resources
      // Decoded only on read, as decoding takes longer than the measured work.
      received.push({
        path: url,
        headers: request.headers,
        bytes: body.length,
        get resources () {
          return (resources ??= decoded(message, bytes))
        }
      })
    }
    if (typeof answer === 'function') return answer(response)
    response.writeHead(message ? answer : 404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const metrics = () => received.filter(({ path }) => path.endsWith('/v1/metrics'))
  return {
    url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`,
    received,
    answers,
    metrics,
    /** All data of one service, the newest last. @param {string} service */
    of: service =>
      metrics()
        .flatMap(({ resources }) => resources)
        .filter(({ attributes }) => attributes['service.name'] === service),
    events: () =>
      received.flatMap(({ resources }) =>
        resources.flatMap(({ attributes, logs }) =>
          logs.map(log => ({ resource: attributes, ...log }))
        )
      ),
    stop () {
      server.closeAllConnections()
      server.close()
    }
  }
}

/**
 * @param {string} message
 * @param {Buffer} bytes
 * @returns {Received['resources']}
 */
function decoded (message, bytes) {
  const type = schema.lookupType(message)
  const { resourceMetrics = [], resourceLogs = [] } = type.toObject(type.decode(bytes), {
    longs: Number,
    enums: String,
    arrays: true
  })
  return [...resourceMetrics, ...resourceLogs].map(
    ({ resource, scopeMetrics = [], scopeLogs = [] }) => ({
      attributes: plainAttributes(resource.attributes),
      scope: {
        ...[...scopeMetrics, ...scopeLogs][0].scope,
        schemaUrl: [...scopeMetrics, ...scopeLogs][0].schemaUrl
      },
      metrics: scopeMetrics.flatMap(({ metrics }) => metrics.map(metricOf)),
      logs: scopeLogs.flatMap(({ logRecords }) =>
        logRecords.map(({ attributes, body, ...record }) => ({
          ...record,
          body: plain(body),
          attributes: plainAttributes(attributes)
        }))
      )
    })
  )
}

/**
 * @param {any} metric
 * @returns {Metric}
 */
function metricOf ({ name, unit = '', gauge, sum, histogram }) {
  const data = gauge ?? sum ?? histogram
  return {
    name,
    unit,
    kind: gauge ? 'gauge' : sum ? 'sum' : 'histogram',
    monotonic: Boolean(sum?.isMonotonic),
    temporality: data.aggregationTemporality,
    points: data.dataPoints.map(point => ({
      attributes: plainAttributes(point.attributes),
      startUnixMs: point.startTimeUnixNano / 1e6,
      unixMs: point.timeUnixNano / 1e6,
      ...(histogram
        ? {
            count: point.count,
            sum: point.sum,
            buckets: point.bucketCounts,
            bounds: point.explicitBounds
          }
        : { value: point.asDouble ?? point.asInt })
    }))
  }
}

module.exports = { startOtlpReceiver, schema }

'use strict'

// dd-trace with runtime metrics only, sent to a local sink at its fixed interval of ten seconds.
// Even without tracing dd-trace wraps the functions of a request, which is its largest cost. The
// variant turns that off, as the metrics do not need it.
process.env.DD_TRACING_ENABLED = 'false'
process.env.DD_TRACE_DISABLED_INSTRUMENTATIONS = 'http,net,fastify,dns,find-my-way,http2,avvio,pino'
require('dd-trace').init({
  runtimeMetrics: true,
  startupLogs: false,
  url: process.env.SINK_URL,
  dogstatsd: { hostname: '127.0.0.1', port: Number(process.env.STATSD_PORT) }
})

'use strict'

// Runtime metrics alone to a local sink; it sends every ten seconds, which cannot be changed.
// Without tracing dd-trace still wraps what a request passes through, which costs more than all
// else: that is switched off as well, as it has no part in the metrics.
process.env.DD_TRACING_ENABLED = 'false'
process.env.DD_TRACE_DISABLED_INSTRUMENTATIONS = 'http,net,fastify,dns,find-my-way,http2,avvio,pino'
require('dd-trace').init({
  runtimeMetrics: true,
  startupLogs: false,
  url: process.env.SINK_URL,
  dogstatsd: { hostname: '127.0.0.1', port: Number(process.env.STATSD_PORT) }
})

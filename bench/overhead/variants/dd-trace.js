'use strict'

// Runtime metrics alone, without tracing, to a local sink; it sends every ten seconds, which cannot be changed.
process.env.DD_TRACING_ENABLED = 'false'
require('dd-trace').init({
  runtimeMetrics: true, startupLogs: false, url: process.env.SINK_URL, dogstatsd: { hostname: '127.0.0.1', port: Number(process.env.STATSD_PORT) }
})

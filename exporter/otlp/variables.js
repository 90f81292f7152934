'use strict'

/**
 * Environment variables that `--otlp` uses. Names beginning with OTEL_EXPORTER_OTLP_ may also
 * contain a signal: OTEL_EXPORTER_OTLP_METRICS_HEADERS.
 * @type {readonly { name: string, help: string }[]}
 */
const variables = Object.freeze([
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    help: 'address under `--otlp env`; default: `http://localhost:4318`'
  },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    help: 'headers of each request, such as `authorization=Bearer%20TOKEN`; also sent to the ' +
      'URL of `--otlp`'
  },
  {
    name: 'OTEL_EXPORTER_OTLP_TIMEOUT', help: 'time limit of a request with its retries, in ms; ' +
    'default: 10000'
  },
  { name: 'OTEL_EXPORTER_OTLP_COMPRESSION', help: '`gzip` or `none`' },
  {
    name: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    help: 'file of the trusted certificate authority; `_CLIENT_CERTIFICATE` and `_CLIENT_KEY` ' +
      'for receivers that require a client certificate'
  },
  {
    name: 'OTEL_METRIC_EXPORT_INTERVAL', help: 'interval between two exports of metrics, in ms; ' +
    'default: 60000'
  },
  {
    name: 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE',
    help: '`cumulative`, `delta` or `lowmemory` (histograms as deltas, other metrics ' +
      'cumulative); Prometheus accepts deltas only if it is configured to'
  },
  { name: 'OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER', help: '`none` turns metrics or events off' },
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    help: 'attributes of every target. Those under `k8s.` and `host.` apply to targets with the ' +
      'exporter’s host name, as in a pod; `service.name`, `process.` and container attributes ' +
      'only to the exporter'
  },
  {
    name: 'OTEL_SERVICE_NAME',
    help: '`service.name` of the exporter; default: `memwatch-exporter`. For a target, it is the ' +
      'name that its agent sends (`MEMWATCH_NAME`)'
  },
  {
    name: 'POD_NAME, POD_NAMESPACE, POD_UID, NODE_NAME',
    help: 'values of the downward API for `k8s.pod.name` and similar attributes; without them ' +
      'memwatch derives the pod where possible'
  }
])

module.exports = { variables }

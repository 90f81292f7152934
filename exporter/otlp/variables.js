'use strict'

/**
 * The variables that `--otlp` goes by. Those of OTEL_EXPORTER_OTLP_ may name a signal:
 * OTEL_EXPORTER_OTLP_METRICS_HEADERS.
 * @type {readonly { name: string, help: string }[]}
 */
const variables = Object.freeze([
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    help: 'where, under `--otlp env`; `http://localhost:4318` without'
  },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    help: 'headers of each request, as `authorization=Bearer%20TOKEN`; they go to the address ' +
      'that `--otlp` names, too'
  },
  { name: 'OTEL_EXPORTER_OTLP_TIMEOUT', help: 'ms for a request, further tries included; 10000' },
  { name: 'OTEL_EXPORTER_OTLP_COMPRESSION', help: '`gzip` or `none`' },
  {
    name: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    help: 'file of the authority that is trusted; `_CLIENT_CERTIFICATE` and `_CLIENT_KEY` for ' +
      'who must show one'
  },
  { name: 'OTEL_METRIC_EXPORT_INTERVAL', help: 'ms between two exports of metrics; 60000' },
  {
    name: 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE',
    help: '`cumulative`, `delta` or `lowmemory`, which is histograms as differences and all ' +
      'else cumulative; Prometheus takes no differences, unless it is told to'
  },
  { name: 'OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER', help: '`none` for no metrics, no events' },
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    help: 'attributes of every target; those of `k8s.` and `host.` of targets with the ' +
      'exporter’s host name, as the containers of a pod have; those of `service.name`, ' +
        '`process.` and containers of the exporter only'
  },
  {
    name: 'OTEL_SERVICE_NAME',
    help: 'the exporter’s own `service.name`, else `memwatch-exporter`; that of a target is ' +
      'what its agent says, `MEMWATCH_NAME`'
  },
  {
    name: 'POD_NAME, POD_NAMESPACE, POD_UID, NODE_NAME',
    help: 'of the downward API: `k8s.pod.name` and so on; in Kubernetes the pod is known ' +
      'without where it can be'
  }
])

module.exports = { variables }

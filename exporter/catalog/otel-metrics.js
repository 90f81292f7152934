'use strict'

/**
 * Metrics of OpenTelemetry's conventions whose numbers /metrics exposes in another form.
 * @type {readonly (Omit<import('./metric').TargetMetric, 'name'> & { otel: { name: string } })[]}
 */
const otelMetrics = Object.freeze([
  {
    type: 'gauge',
    help: 'Share of time in which the event loop was not waiting, over the last 30 s.',
    otel: { name: 'nodejs.eventloop.utilization', unit: '1' },
    read: (_, { signal }) => signal('eventLoopUtilizationRatio') ?? undefined
  },
  {
    type: 'gauge',
    help: 'Age of the process.',
    otel: { name: 'process.uptime', unit: 's' },
    read: ({ hello, frame }) => hello.threadId === 0 ? frame?.uptimeSeconds : undefined
  }
])

module.exports = { otelMetrics }

'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { '@opentelemetry/sdk-metrics': '1.17.0', '@opentelemetry/api': '1.6.0' } },
  fixed: { packages: { '@opentelemetry/sdk-metrics': '1.17.1', '@opentelemetry/api': '1.6.0' } },
  expect: ['js-heap-leak'],
  culprit: /sdk-metrics|_stashAccumulations|TemporalMetricProcessor/,
  load: '2,000 measurements a second of 100 series, two readers that collect five times a second',
  app ({ perSecond }) {
    const { AggregationTemporality, MeterProvider, MetricReader } = require('@opentelemetry/sdk-metrics')
    class Reader extends MetricReader {
      async onForceFlush () {}
      async onShutdown () {}
      selectAggregationTemporality () { return AggregationTemporality.CUMULATIVE }
    }
    const provider = new MeterProvider()
    for (const reader of [new Reader(), new Reader()]) {
      provider.addMetricReader(reader)
      setInterval(() => reader.collect(), 200)
    }
    const orders = provider.getMeter('shop').createCounter('orders')
    perSecond(2000, n => orders.add(1, { route: `/orders/${n % 100}`, method: 'GET' }))
  }
}

'use strict'

// OpenTelemetry with the settings of its readme: runtime metrics by OTLP over HTTP, every second.
const { OTLPMetricExporter } = require('@opentelemetry/exporter-metrics-otlp-http')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { RuntimeNodeInstrumentation } = require('@opentelemetry/instrumentation-runtime-node')
const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')

const exporter = new OTLPMetricExporter({ url: `${process.env.SINK_URL}/v1/metrics` })
const meterProvider = new MeterProvider({
  readers: [
    new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: 1000,
      exportTimeoutMillis: 900
    })
  ]
})
registerInstrumentations({
  meterProvider,
  instrumentations: [new RuntimeNodeInstrumentation({ monitoringPrecision: 1000 })]
})

'use strict'

/**
 * The exporter's parts of OpenTelemetry, in matching versions. They are a package of their own, as
 * OpenTelemetry would be half of the installation for an option that few use.
 */

const { diag, DiagLogLevel, ValueType } = require('@opentelemetry/api')
const {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate
} = require('@opentelemetry/otlp-exporter-base/node-http')
const {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer
} = require('@opentelemetry/otlp-transformer')
const { envDetector, resourceFromAttributes } = require('@opentelemetry/resources')
const { AggregationTemporality, DataPointType } = require('@opentelemetry/sdk-metrics')

module.exports = {
  AggregationTemporality,
  DataPointType,
  DiagLogLevel,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ValueType,
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
  diag,
  envDetector,
  resourceFromAttributes
}

'use strict'

/**
 * OpenTelemetry's packages that the exporter uses, in versions that fit each other. They are a
 * package of their own, because they would double the size of the installation for an option that
 * most users leave off.
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

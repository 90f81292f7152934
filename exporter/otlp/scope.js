'use strict'

const { version } = require('../package.json')
const { SEMCONV_VERSION } = require('../catalog/otel')

/** Instrumentation scope: memwatch sends the metrics and defines their names. */
const scope = Object.freeze({
  name: 'memwatch',
  version,
  schemaUrl: `https://opentelemetry.io/schemas/${SEMCONV_VERSION}`
})

module.exports = { scope }

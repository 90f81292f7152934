'use strict'

const { version } = require('../package.json')
const { SEMCONV_VERSION } = require('../catalog/otel')

/** Instrumentation scope: the sender, and the owner of the names. */
const scope = Object.freeze({
  name: 'memwatch',
  version,
  schemaUrl: `https://opentelemetry.io/schemas/${SEMCONV_VERSION}`
})

module.exports = { scope }

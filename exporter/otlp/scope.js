'use strict'

const { version } = require('../package.json')
const { SEMCONV_VERSION } = require('../catalog/otel')

/** Who says it, and whose names those are. */
const scope = Object.freeze({
  name: 'memwatch',
  version,
  schemaUrl: `https://opentelemetry.io/schemas/${SEMCONV_VERSION}`
})

module.exports = { scope }

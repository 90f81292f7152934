'use strict'

const {
  fields, GC_HOOKS_MISSING, PROTOCOL_VERSION, MAX_LINE_BYTES
} = require('@memwatch/agent/protocol/frame')
const { FIELD_SOURCES } = require('@memwatch/engine/decode/field-sources')
const { REJECT_REASONS } = require('../../engine/decode/decode')
const { page } = require('./page')
const { table } = require('../markdown')

const wireProtocol = () =>
  page(
    'Wire protocol',
    `Version ${PROTOCOL_VERSION}: NDJSON over a Unix socket or loopback TCP, one connection per ` +
      'isolate. An agent sends one `hello`, then a `frame` a second, then a `bye`. Lines are at ' +
        `most ${MAX_LINE_BYTES} bytes. Counters are cumulative. An agent whose hello has ` +
          '`commands` accepts them over a Unix socket, and sends an `answer` to each. ' +
            '`agent/protocol/frame.js` is the contract.',
    '## GC counters',
    'In the hello `gcCounter` is `hooks`, V8\'s own callbacks, or `observer`, a ' +
      'PerformanceObserver. [`gcHooksMissing`](troubleshooting.md) is the reason for the latter: ' +
        `${GC_HOOKS_MISSING.map(reason => `\`${reason}\``).join(', ')}.`,
    '## Fields of a frame',
    table(
      ['field', 'unit', 'kind', 'scope', 'shape', 'source'],
      Object.entries(fields).map(([name, field]) => [
        `\`${name}\``,
        field.unit,
        field.kind,
        field.scope,
        field.shape,
        FIELD_SOURCES[/** @type {keyof typeof fields} */ (name)]
      ])
    ),
    '## Rejected lines\n\nReasons, as counted in ' +
      '`memwatch_exporter_lines_rejected_total{reason}`: ' +
        `${REJECT_REASONS.map(reason => `\`${reason}\``).join(', ')}.`
  )

module.exports = { wireProtocol }

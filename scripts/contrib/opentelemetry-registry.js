'use strict'

const { stringify } = require('yaml')
const { REPOSITORY, nameOf, version } = require('../packages')

/** Day on which the entry was written. */
const CREATED = '2026-11-23'

/** @returns {string} entry of OpenTelemetry's registry, for data/registry/ of opentelemetry.io */
const openTelemetryEntry = () =>
  stringify(
    {
      title: 'memwatch',
      registryType: 'application integration',
      language: 'js',
      tags: ['node.js', 'memory', 'garbage-collection', 'diagnostics'],
      license: 'MIT',
      description:
        'Diagnoses memory problems of Node.js processes: names the problem, its evidence and the ' +
        'change that fixes it. The exporter sends metrics, verdicts and process deaths by OTLP, ' +
        'under the names of the semantic conventions.',
      authors: [{ name: 'memwatch', url: REPOSITORY }],
      urls: { repo: REPOSITORY, docs: `${REPOSITORY}/blob/main/docs/metrics.md` },
      createdAt: CREATED,
      isNative: true,
      isFirstParty: true,
      package: { registry: 'npm', name: nameOf('otlp'), version }
    },
    // In YAML 1.1 the date is quoted: a parser of that version would read it as a timestamp.
    { version: '1.1' }
  )

module.exports = { openTelemetryEntry }

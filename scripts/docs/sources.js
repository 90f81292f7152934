'use strict'

const { diagnoses: allDiagnoses } = require('../../engine/diagnoses')
const { fileSources } = require('../../cli/sources')
const { promClient, memwatchMetrics } = require('../../cli/sources/prometheus')
const { cannotTell } = require('../../cli/sources/support')
const { page } = require('./page')
const { table } = require('../markdown')

const allSources = [...fileSources, promClient, memwatchMetrics]
/**
 * Options for a source that lacks values: as when the limit of the container is.
 */
const GIVEN = { containerLimitBytes: 512 * 2 ** 20 }

/**
 * @param {import('../../cli/sources/define-source').Source} source
 * @param {string} id of a diagnosis
 */
function told (source, id) {
  if (cannotTell(source, GIVEN).has(id)) return '–'
  const words = [
    ...(source.unsure?.[id] ?? source.unsure?.['*'] ? ['suspected at most'] : []),
    ...(source.cannotExclude?.[id] ? ['never ruled out'] : []),
    ...(cannotTell(source).has(id) ? ['with `--memory`'] : [])
  ]
  return ['yes', ...words].join(', ')
}

const sources = () =>
  page(
    'Sources',
    '`memwatch diagnose` judges what there is of a process, by the same code as live. A ' +
      'recording of memwatch tells all that its agent told. Others tell less: what needs more ' +
        'is answered with unknown, and the report says what and why. A file is known by its ' +
          'content, gzip or plain.',
    '## What each can tell',
    table(
      ['diagnosis', ...allSources.map(({ id }) => `[${id}](#${id})`)],
      allDiagnoses.map(({ id }) => [
        `[\`${id}\`](diagnoses.md#${id})`,
        ...allSources.map(source => told(source, id))
      ])
    ),
    'Which of these holds is found out, not written down: a healthy app is told to the ' +
      'diagnoses in all the fields that a source has, and who answers unknown cannot be ' +
        'answered from it. What a source leaves open and the caller knows is said by `--flags`, ' +
          '`--memory` and `--node`.',
    ...allSources.flatMap(source => [
      `## ${source.id}\n\n${source.title[0].toUpperCase()}${source.title.slice(1)}${source.accepted ? `: ${source.accepted}` : ', by `--prometheus URL`'}. It says nothing of ${source.lacks}.`,
      ...Object.entries({ ...source.unsure }).map(
        ([id, why]) => `Suspected at most${id === '*' ? '' : ` (\`${id}\`)`}: ${why}.`
      ),
      ...[...new Set(Object.values({ ...source.cannotExclude }))].map(
        why =>
          `Never ruled out (${Object.entries({ ...source.cannotExclude })
            .filter(([, other]) => other === why)
            .map(([id]) => `\`${id}\``)
            .join(', ')}): ${why}.`
      ),
      ...[source.bounds?.({}) ?? []].flat(),
      `Fields: ${[...new Set(source.fields)].map(name => `\`${name}\``).join(', ')}.`,
      ...(cannotTell(source, GIVEN).size === 0
        ? []
        : [
            table(
              ['it cannot tell', 'because'],
              [...cannotTell(source, GIVEN)].map(([id, why]) => [`\`${id}\``, why])
            )
          ])
    ])
  )

module.exports = { sources }

'use strict'

const { diagnoses: allDiagnoses } = require('../../engine/diagnoses')
const { fileSources } = require('../../cli/sources')
const { promClient, memwatchMetrics } = require('../../cli/sources/prometheus')
const { cannotTell } = require('../../cli/sources/support')
const { page } = require('./page')
const { table } = require('../markdown')

const allSources = [...fileSources, promClient, memwatchMetrics]
/** Options for a source that lacks values, here the limit of the container. */
const GIVEN = { containerLimitBytes: 512 * 2 ** 20 }

const EXAMPLES = `\`\`\`sh
node --trace-gc server.js > app.log          # a GC log: put load on the app, for a minute or longer
npx @memwatch/cli diagnose app.log --memory 512Mi --flags "--max-old-space-size=256"
npx @memwatch/cli diagnose report.*.json     # Node's diagnostic reports
npx @memwatch/cli diagnose --prometheus http://localhost:9090 --selector '{job="api"}'
\`\`\`

\`--memory\` is the memory limit of the container, \`--flags\` are the flags of the process. Give
both if they were set: the log does not contain them.`

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
    '`memwatch diagnose` runs the same checks on other sources than a live agent. A recording ' +
      'of memwatch contains all frames of its agents. Other sources contain less: a check that ' +
      'needs more is unknown, and the report names what is missing. The type of a file is ' +
      'detected, gzip or plain.',
    EXAMPLES,
    '## Supported checks',
    table(
      ['diagnosis', ...allSources.map(({ id }) => `[${id}](#${id})`)],
      allDiagnoses.map(({ id }) => [
        `[\`${id}\`](diagnoses.md#${id})`,
        ...allSources.map(source => told(source, id))
      ])
    ),
    'The table is computed: each diagnosis evaluates a healthy app in the fields of the source, ' +
      'and a diagnosis that stays unknown is not supported. `--flags`, `--memory` and `--node` ' +
      'add facts that a source lacks.',
    ...allSources.flatMap(source => [
      `## ${source.id}\n\n${source.title[0].toUpperCase()}${source.title.slice(1)}${source.accepted ? `: ${source.accepted}` : ', by `--prometheus URL`'}. It lacks ${source.lacks}.`,
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
              ['not supported', 'reason'],
              [...cannotTell(source, GIVEN)].map(([id, why]) => [`\`${id}\``, why])
            )
          ])
    ])
  )

module.exports = { sources }

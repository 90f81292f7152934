'use strict'

const { median, min, max } = require('simple-statistics')
const { apps } = require('../lab')
const { diagnoses } = require('../engine/diagnoses')
const { outcomeOf, TOLERANCE } = require('../engine/verdicts/outcome')
const { formatValue } = require('../engine/text/format')

/**
 * @typedef {object} Result one run of a lab app
 * @property {string} node major version
 * @property {string} app
 * @property {'broken' | 'fixed'} form
 * @property {string} thread judged thread
 * @property {string | null} expected diagnosis
 * @property {string | null} found primary diagnosis of the main thread, otherwise of a worker,
 *   otherwise the last confirmed one that did not last
 * @property {boolean} mayStarve true for a healthy app that starves with so little CPU
 * @property {string | null} had diagnosis that a repaired app had before
 * @property {number | null} confirmedAfterSeconds
 * @property {string[]} others other suspected or confirmed diagnoses
 * @property {string[]} opportunities suspected or confirmed; a short run rarely shows whether a
 *   heap grows, so suspected ones count
 * @property {import('../engine/diagnoses/define-diagnosis').Fix | null} fix the first fix
 * @property {Record<string, number | null>} measured signals predicted by the fix of the broken
 *   form, measured at the end of this run
 */

const STARVES = 'semi-space-starvation'

/**
 * True if an app with a problem got its diagnosis, a healthy app none, and a repaired app no longer
 * has its own. A repaired app may have another diagnosis, because a fix may reveal the next
 * bottleneck.
 * @param {Result} result
 */
function isRight ({ app, form, expected, found, opportunities, mayStarve, had }) {
  if (form === 'fixed') return found !== had && found !== 'nothing reported'
  if (mayStarve && found === STARVES) return true
  const opportunity = apps.find(({ id }) => id === app)?.opportunity
  return found === expected && (!opportunity || opportunities.includes(opportunity))
}

/**
 * Compares predicted and measured values, for every applied fix.
 * @param {Result[]} results
 */
function comparisons (results) {
  return results.filter(({ form }) => form === 'fixed').flatMap(fixed => {
    const broken = results.find(
      ({ node, app, form }) => form === 'broken' && node === fixed.node && app === fixed.app
    )
    if (!broken?.fix || broken.found !== broken.expected) return []
    return broken.fix.predicted.map(predicted => ({
      node: fixed.node, app: fixed.app, title: broken.fix?.title ?? '', after: fixed.found,
      ...outcomeOf(predicted, broken.measured[predicted.signal], fixed.measured[predicted.signal])
    }))
  })
}

/** @param {(string | number)[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')
/** @param {number} share */
const percent = share => `${Math.round(100 * share)} %`

/** Builds the text of docs/accuracy.md. @param {Result[]} results */
function accuracyPage (results) {
  const nodes = [...new Set(results.map(({ node }) => node))].sort((a, b) => Number(a) - Number(b))
  const broken = results.filter(({ form }) => form === 'broken')
  const fixed = results.filter(({ form }) => form === 'fixed')
  const ill = broken.filter(({ expected }) => expected !== null)
  const healthy = broken.filter(({ expected }) => expected === null)
  const wrong = results.filter(result => !isRight(result))
  const compared = comparisons(results)
  const fixes = [...new Set(compared.map(({ node, app }) => `${node} ${app}`))]
  const goodFixes = fixes.filter(
    name => compared.filter(({ node, app }) => `${node} ${app}` === name)[0].good
  )

  const bySetting = (/** @type {string} */ name) => apps.find(({ id }) => name.endsWith(` ${id}`))?.fixedBy === 'fix'

  return `# Accuracy

<!-- Written by npm run bench:accuracy -- --write; do not edit. -->
Every app of [the lab](lab.md) ran live on Node.js ${nodes.join(', ')}, in a memory cgroup like its container. The machine had two cores,
other load, and up to three apps at a time. The rules were made with these apps: expect less accuracy on other apps, as in [Published leaks](realworld.md).

| | right |
|---|---|
| primary finding of apps with a problem | **${ill.filter(isRight).length} of ${ill.length}** |
| primary finding of healthy apps | **${healthy.filter(isRight).length} of ${healthy.length}** |
| primary finding of repaired apps | ${fixed.filter(isRight).length} of ${fixed.length} |
| healthy apps with a confirmed finding | **${healthy.filter(({ found, others }) => found !== null || others.some(other => other.endsWith('confirmed'))).length}** |
| main prediction of a fix within ${percent(TOLERANCE)} | **${goodFixes.length} of ${fixes.length}** |
| the same, only fixes by flag or variable, whose effect memwatch computes | **${goodFixes.filter(bySetting).length} of ${fixes.filter(bySetting).length}** |

## What was found

A row is the problem of an app, a column the primary finding.

${confusion(broken)}

## Seconds to confirm

${table([
  ['diagnosis', 'runs', 'median', 'range'],
  ...diagnoses
    .filter(({ opportunity }) => !opportunity)
    .map(({ id }) => {
      const seconds = ill
        .filter(({ expected, found }) => expected === id && found === id)
        .map(result => result.confirmedAfterSeconds ?? 0)
      return seconds.length === 0
        ? [id, 0, '–', '–']
        : [
            id,
            seconds.length,
            median(seconds).toFixed(0),
            `${min(seconds).toFixed(0)} – ${max(seconds).toFixed(0)}`
          ]
    })
])}

The seconds count from the start of the process. Leaks, native leaks and pinning are confirmed when
growth in a straight line has covered enough of the way to the limit.

## Predictions

The bench applied the first fix of each verdict. The effect is the change of the signal. For a repair of the code, memwatch predicts that the growth ends.

${table([
  [
    'Node',
    'app',
    'fix',
    'signal',
    'before',
    'predicted',
    'measured',
    'within 25 % of the effect',
    'finding after'
  ],
  ...compared.map(({ node, app, title, signal, from, to, measured, unit, good, after }) => [
    node,
    app,
    title,
    signal,
    formatValue(from, unit),
    formatValue(to, unit),
    formatValue(measured, unit),
    good ? 'yes' : 'no',
    after ?? 'none'
  ])
])}

\`engine/v8/young-generation.js\` has the model of semi-spaces. All predictions are for the same
work a second. If clients wait for each answer, the throughput rises instead. RSS is the mean of the
run without its start. For the allocator, it is the mean of malloc's retained memory, without the
memory that jemalloc needs for itself or returns a second later.

## Wrong

${wrong.length === 0 ? 'None.' : table([['Node', 'app', 'form', 'expected', 'found', 'also'], ...wrong.map(({ node, app, form, expected, found, others }) => [node, app, form, expected ?? 'nothing', found ?? 'nothing', others.join(', ') || '–'])])}
`
}

/** @param {Result[]} results */
function confusion (results) {
  const names = [...diagnoses.filter(({ opportunity }) => !opportunity).map(({ id }) => id), null]
  const columns = names.filter(name => results.some(({ found }) => found === name))
  return table([
    ['', ...columns.map(name => name ?? 'nothing')],
    ...names
      .filter(name => results.some(({ expected }) => expected === name))
      .map(row => [
        row ?? '**healthy**',
        ...columns.map(
          column =>
            results.filter(({ expected, found }) => expected === row && found === column).length ||
            ''
        )
      ])
  ])
}

module.exports = { accuracyPage, isRight, comparisons }

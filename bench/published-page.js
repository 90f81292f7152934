'use strict'

const { spread } = require('../cli/comparison/render')
const { figures } = require('../cli/comparison/figures')
const { formatRatio, formatValue } = require('../engine/text/format')

/**
 * @typedef {object} Result
 * @property {import('./published-cases').Case} published
 * @property {Pick<import('./published-cases').Variant, 'title' | 'claims'>} variant
 * @property {string} node major version
 * @property {import('../cli/comparison/compare').Comparison} comparison
 */

/** Tolerance: a result within a third of the published one confirms it. */
const TOLERANCE = 1 / 3

/** @param {(string | number)[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')

/** @param {number | null} ratio */
const signed = ratio =>
  ratio === null ? '–' : `${ratio > 0 ? '+' : ratio < 0 ? '−' : ''}${formatRatio(Math.abs(ratio))}`

/**
 * @param {number} measured
 * @param {number} published
 */
const near = (measured, published) =>
  Math.abs(measured - published) <= TOLERANCE * Math.abs(published)

/**
 * Verdict on a published result, in words.
 * @param {import('./published-cases').Claim} claim
 * @param {import('../cli/comparison/compare').Row} row
 */
function verdict (claim, { before, after, changeRatio, beyondNoise }) {
  if (claim.published === '') return ''
  if (!before || !after || changeRatio === null) return 'not measured'
  if (beyondNoise === false) return 'no: within noise'
  if (claim.changeRatio !== undefined) {
    if (changeRatio * claim.changeRatio <= 0) return 'no: opposite direction'
    return near(changeRatio, claim.changeRatio)
      ? 'yes'
      : Math.abs(changeRatio) > Math.abs(claim.changeRatio)
        ? 'more than published'
        : 'less than published'
  }
  if (claim.before === undefined) return changeRatio < 0 ? 'yes' : 'no'
  const was = near(before.median, claim.before)
  const is =
    claim.atMost === undefined ? near(after.median, claim.after ?? 0) : after.median <= claim.atMost
  return was && is
    ? 'yes'
    : was
      ? 'before yes, after no'
      : is
        ? 'after yes, before no'
        : 'direction yes, numbers no'
}

/** Builds docs/published.md. @param {Result[]} results */
function publishedPage (results) {
  const cases = [...new Set(results.map(({ published }) => published))]
  const claims = results.flatMap(({ variant, comparison }) =>
    variant.claims
      .filter(({ published }) => published !== '')
      .map(claim => verdict(claim, rowOf(comparison, claim)))
  )
  const repeat = Math.max(...results.map(({ comparison }) => comparison.after.runs.length))
  return `# Published results, measured again

<!-- Written by npm run bench:published -- --write; do not edit. -->
Other authors have published effects of these fixes. \`memwatch try\` and \`memwatch compare\` measured them again on similar apps of [the lab](lab.md).
The original apps differ from these, so only direction and order of magnitude can agree.

| figures | |
|---|---|
| as published, within a third | ${claims.filter(word => word === 'yes').length} of ${claims.length} |
| in part | ${claims.filter(word => word !== 'yes' && !word.startsWith('no')).length} |
| not as published | ${claims.filter(word => word.startsWith('no')).length} |

Node.js ${[...new Set(results.map(({ node }) => node))].sort().join(', ')}, ${repeat} runs of each kind, on a machine with two cores and other load, which causes some of the \`event-loop-blocked\` findings.
In \`memwatch try\`, runs before and after alternate. Values are medians, with minimum and maximum in brackets. A difference counts only if the ranges do not overlap.

${cases
  .map(published =>
    section(
      published,
      results.filter(result => result.published === published)
    )
  )
  .join('\n\n')}
`
}

/**
 * @param {import('./published-cases').Case} published
 * @param {Result[]} results
 */
const section = ({ title, claim, model, remark, app, memoryMb, seconds }, results) => `## ${title}

Published: ${claim} Here: \`${app}\` in ${memoryMb} MiB, ${seconds} s a run. ${model}
${remark}

${results
  .map(
    ({ variant, node, comparison }) => `### Node ${node}: ${variant.title}

${table([
  ['', 'published', 'before', 'after', 'change', 'as published?'],
  ...variant.claims.map(claim => {
    const row = rowOf(comparison, claim)
    return [
      row.title,
      claim.published || '–',
      spread(row.before, row.unit, comparison.before.runs.length),
      spread(row.after, row.unit, comparison.after.runs.length),
      `${signed(row.changeRatio)}${row.beyondNoise === false ? ', within noise' : ''}`,
      verdict(claim, row)
    ]
  })
])}

${predictions(comparison)}`
  )
  .join('\n\n')}`

/** @param {import('../cli/comparison/compare').Comparison} comparison */
function predictions ({ fix, verdicts }) {
  const gone = verdicts
    .map(
      ({ diagnosis, before, after }) =>
        `${diagnosis} in ${before} before and ${after} after`
    )
    .join('; ')
  const told =
    fix && fix.applied !== false
      ? fix.outcomes
        .map(
          ({ signal, unit, from, to, measured, good }) =>
              `\`${signal}\` from ${formatValue(from, unit)} to ${formatValue(to, unit)} ` +
                `(measured: ${formatValue(measured, unit)}${good ? '' : ', missed'})`
        )
        .join('; ')
      : ''
  return [told && `Predicted: ${told}.`, gone && `Runs with a confirmed finding: ${gone}.`].filter(Boolean).join(' ')
}

/**
 * @param {import('../cli/comparison/compare').Comparison} comparison
 * @param {import('./published-cases').Claim} claim
 */
const rowOf = ({ rows }, { figure: name }) =>
  rows.find(row => row.figure === name) ?? {
    figure: name,
    title: figures[name].title,
    unit: figures[name].unit,
    before: null,
    after: null,
    changeRatio: null,
    beyondNoise: null
  }

module.exports = { publishedPage }

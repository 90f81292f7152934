'use strict'

/**
 * Creates the end of a diagnosis's page on the site. The runbook has the remedy; these sections
 * list the inputs of the diagnosis, from the tables of the program.
 */

const { table } = require('./markdown')
const { charts } = require('./page-charts')
const { signals } = require('../engine/signals')
const { FIGURES } = require('../engine/signals/trend-signal')
const { allRuns } = require('../bench/realworld/cases')

/** @typedef {import('../engine/diagnoses/define-diagnosis').Diagnosis} Diagnosis */

/**
 * @param {Diagnosis} diagnosis
 * @returns {string[]} names of its evidence: its signals, and the numbers of its trends
 */
const evidenceOf = ({ requires, uses }) => [...requires, ...uses].flatMap(name =>
  name.endsWith('Trend')
    ? Object.keys(FIGURES).map(suffix => name.replace(/Trend$/, suffix))
    : [name])

/** @param {Diagnosis} diagnosis */
function graphs (diagnosis) {
  const evidence = evidenceOf(diagnosis)
  const shown = charts.filter(chart =>
    evidence.some(name => chart.evidence[name] && chart.evidence[name].as !== 'text'))
  if (shown.length === 0) return []
  return [
    '## What the graphs show',
    'The exporter\'s page marks the evidence on these charts.',
    table(['chart', 'what to look for'], shown.map(({ title, help }) => [title, help]))
  ]
}

/** @param {Diagnosis} diagnosis */
function threads ({ id }) {
  const leaks = allRuns()
    .filter(({ form, expect }) => form === 'leaky' && expect.includes(id))
    .map(({ of }) => /** @type {import('../bench/realworld/cases').Leak} */ (of))
  if (leaks.length === 0) return []
  return [
    '## Reported by others',
    'These published cases run in the repository; [the results](../../docs/realworld.md) say what ' +
      'memwatch found in each.',
    table(['case', 'thread'], leaks.map(({ title, source }) =>
      [title, `[${source.replace('https://github.com/', '').replace('/issues/', '#')}](${source})`]))
  ]
}

/**
 * @param {Diagnosis} diagnosis
 * @returns {string} Markdown; links are relative to a runbook
 */
function diagnosisSections (diagnosis) {
  const { requires, uses, limits } = diagnosis
  return [
    ...graphs(diagnosis),
    '## How memwatch knows',
    'The diagnosis reads these signals. Without those marked *required* it is `unknown`.',
    table(
      ['signal', 'unit', 'meaning', ''],
      [...requires, ...uses].map(name => [
        `\`${name}\``, signals[name].unit, signals[name].help, requires.includes(name) ? 'required' : ''
      ])
    ),
    '### Limits',
    'Each number that the diagnosis compares with; the reasons stand beside them in ' +
      `[its source](../../engine/diagnoses/${diagnosis.id}.js).`,
    table(['limit', 'value'], Object.entries(limits).map(([name, value]) =>
      [`\`${name}\``, Number(value.toPrecision(4))])),
    ...threads(diagnosis)
  ].join('\n\n') + '\n'
}

module.exports = { diagnosisSections }

'use strict'

const { diagnoses: allDiagnoses } = require('../../engine/diagnoses')
const { signals } = require('../../engine/signals')
const { FIGURES } = require('../../engine/signals/trend-signal')
const { page } = require('./page')
const { table } = require('../markdown')

const diagnoses = () =>
  page(
    'Diagnoses',
    'The diagnoses, causes before symptoms. A diagnosis is `unknown` while evidence is ' +
      'missing, `ok` when it is ruled out, `suspected`, or `confirmed`. ' +
      '[Concepts](concepts.md#state-and-severity) explains state and severity.',
    ...allDiagnoses.flatMap(({ id, title, severity, runbook, requires, uses, limits }) => [
      `## ${id}\n\n${title}. ` +
        `${runbook
          ? `Severity: ${severity} at most. Runbook ` +
          `[${runbook}](../alerts/runbooks/${runbook}.md).`
            : 'An opportunity: nothing is ' +
            'wrong, it is never the primary finding, and no alert reports it.'}`,
      table(
        ['signal', 'unit', 'meaning'],
        [...requires, ...uses].map(name => [`\`${name}\``, signals[name].unit, signals[name].help])
      ),
      table(
        ['limit', 'value'],
        Object.entries(limits)
          .map(([name, value]) => [`\`${name}\``, Number(value.toPrecision(4))])
      )
    ]),
    '## Numbers of trends\n\nA trend is one signal of several numbers. Evidence and ' +
      'predictions name one of these numbers: by the name of the trend, with another suffix than ' +
      '`Trend`. An example is `liveHeapRiseBytes` of `liveHeapTrend`.',
    table(
      ['suffix', 'unit', 'meaning'],
      Object.entries(FIGURES).map(([suffix, { unit, help }]) => [
        `\`${suffix}\``, unit, help('the value')
      ])
    )
  )

module.exports = { diagnoses }

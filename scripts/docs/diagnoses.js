'use strict'

const { diagnoses: allDiagnoses } = require('../../engine/diagnoses')
const { signals } = require('../../engine/signals')
const { FIGURES } = require('../../engine/signals/trend-signal')
const { page } = require('./page')
const { table } = require('../markdown')

const diagnoses = () =>
  page(
    'Diagnoses',
    'What memwatch can find, causes before symptoms. A diagnosis is `unknown` while evidence is ' +
      'missing, `ok` when it is ruled out, `suspected`, or `confirmed`.',
    ...allDiagnoses.flatMap(({ id, title, severity, runbook, requires, uses, limits }) => [
      `## ${id}\n\n${title}. ` +
        `${runbook
          ? `Severity: ${severity} at most, from what is at stake. Runbook ` +
          `[${runbook}](../alerts/runbooks/${runbook}.md).`
            : 'An opportunity: nothing is ' +
            'wrong, it is never the primary finding, and no alert tells of it.'}`,
      table(
        ['signal', 'unit', 'what it is'],
        [...requires, ...uses].map(name => [`\`${name}\``, signals[name].unit, signals[name].help])
      ),
      `Limits: ${Object.entries(limits)
        .map(([name, value]) => `\`${name}\` ${Number(value.toPrecision(4))}`)
        .join(', ')}.`
    ]),
    '## Numbers of trends\n\nA trend is one signal of several numbers. In evidence and ' +
      'predictions each has the name of its trend, with another end: `liveHeapTrend` has ' +
      '`liveHeapRiseBytes`.',
    table(
      ['end of the name', 'unit', 'what it is'],
      Object.entries(FIGURES).map(([suffix, { unit, help }]) => [
        `\`${suffix}\``, unit, help('what is measured')
      ])
    )
  )

module.exports = { diagnoses }

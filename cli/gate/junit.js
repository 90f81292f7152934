'use strict'

const { printable } = require('@memwatch/engine/text/printable')
const { escapeMarkup } = require('../text/escape')
const { describeCompared } = require('./render')
const { measures } = require('./measures')

/**
 * The result as JUnit XML, which CI systems show beside tests: a test case for each measure. A
 * measure that became worse is a failure. Without a decision the case is an error, so that nothing
 * is silently green.
 *
 * @param {import('./render').Result} result
 * @returns {string}
 */
function toJunit (result) {
  const { outcome, reason, compared, seconds } = result
  const cases = compared.length > 0
    ? compared.map(row =>
      testCase(measures[row.measure].title, row.outcome, describeCompared(row, result)))
    : [testCase('Memory of the command', outcome, reason ?? outcome)]
  const count = (/** @type {string} */ tag) => cases.filter(text => text.includes(`<${tag} `)).length
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites><testsuite name="memwatch gate" tests="${cases.length}" ` +
      `failures="${count('failure')}" errors="${count('error')}" time="${seconds.toFixed(3)}">`,
    ...cases,
    '</testsuite></testsuites>',
    ''
  ].join('\n')
}

/**
 * @param {string} name
 * @param {string} outcome
 * @param {string} text
 */
function testCase (name, outcome, text) {
  const message = escapeMarkup(printable(text))
  const open = `<testcase classname="memwatch.gate" name="${escapeMarkup(name)}"`
  if (outcome === 'pass' || outcome === 'written') return `${open}/>`
  const tag = outcome === 'worse' ? 'failure' : 'error'
  return `${open}><${tag} message="${message}" type="${outcome}"/></testcase>`
}

module.exports = { toJunit }

'use strict'

const { primaryOf } = require('../classify/evaluate')
const { fromOutside } = require('../fixes/from-outside')
const { UsageError } = require('./usage-error')

/**
 * @typedef {object} Chosen
 * @property {import('../classify/evaluate').Verdict} [verdict] absent where nothing was found
 * @property {import('../diagnoses/define-diagnosis').Fix} [fix] absent where none can be applied
 * @property {{ command: string[], env: Record<string, string> }} [applied] the command with it
 * @property {{ title: string, reason: string }[]} skipped fixes that could not be applied from outside
 */

/**
 * The finding, and the first of its fixes that can be applied.
 * @param {import('../compare/measure').Run} run @param {string[]} words the command @param {import('./try-options').TryOptions} options
 * @returns {Chosen}
 * @throws {UsageError} when there is no fix of that number
 */
function chooseFix ({ target }, words, { diagnosis, fixNumber }) {
  const verdict = diagnosis
    ? target?.verdicts.find(verdict => verdict.diagnosis === diagnosis && (verdict.state === 'confirmed' || verdict.state === 'suspected'))
    : target && primaryOf(target.verdicts)
  /** @type {Chosen['skipped']} */
  const skipped = []
  if (!target || !verdict) return { skipped }
  if (fixNumber !== undefined && fixNumber > verdict.fix.length) throw new UsageError(`--fix: ${verdict.diagnosis} has ${verdict.fix.length} here, not ${fixNumber}`)
  for (const fix of fixNumber === undefined ? verdict.fix : [verdict.fix[fixNumber - 1]]) {
    const applied = fromOutside(fix.change, { command: words, hello: target.hello, nodeOptions: process.env.NODE_OPTIONS })
    if (!('reason' in applied)) return { verdict, fix, applied, skipped }
    skipped.push({ title: fix.title, reason: applied.reason })
  }
  return { verdict, skipped }
}

module.exports = { chooseFix }

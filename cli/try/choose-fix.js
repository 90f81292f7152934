'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { fromOutside } = require('./from-outside')
const { UsageError } = require('../program/usage-error')

/**
 * @typedef {object} Chosen
 * @property {import('@memwatch/engine/verdicts/evaluate').Verdict} [verdict] absent without a
 *   finding
 * @property {import('@memwatch/engine/diagnoses/define-diagnosis').Fix} [fix] absent if no fix is
 *   applicable
 * @property {{ command: string[], env: Record<string, string> }} [applied] the command with the
 *   change
 * @property {{ title: string, reason: string }[]} skipped fixes that cannot be applied from outside
 */

/**
 * Chooses the finding, and the first of its fixes that can be applied.
 * @param {import('../comparison/measure').Run} run
 * @param {string[]} words words of the command
 * @param {import('./try-options').TryOptions} options
 * @returns {Chosen}
 * @throws {UsageError} if the number is too high, or the named change is impossible
 */
function chooseFix ({ target }, words, { diagnosis, fixNumber, named }) {
  const verdicts = target ? findCase(target).verdicts : []
  const verdict = diagnosis
    ? verdicts.find(({ diagnosis: id, state }) =>
      id === diagnosis && (state === 'confirmed' || state === 'suspected'))
    : primaryOf(verdicts)
  /** @type {Chosen['skipped']} */
  const skipped = []
  if (target && named) {
    return { verdict: verdict || undefined, ...applyNamed(named, words, target.hello), skipped }
  }
  if (!target || !verdict) return { skipped }
  if (fixNumber !== undefined && fixNumber > verdict.fix.length) {
    throw new UsageError(
      `--fix: expected a number up to ${verdict.fix.length}, the fixes of ` +
        `${verdict.diagnosis}, got ${fixNumber}`
    )
  }
  for (const fix of fixNumber === undefined ? verdict.fix : [verdict.fix[fixNumber - 1]]) {
    const applied = fromOutside(fix.change, {
      command: words,
      hello: target.hello,
      nodeOptions: process.env.NODE_OPTIONS
    })
    if (!('reason' in applied)) return { verdict, fix, applied, skipped }
    skipped.push({ title: fix.title, reason: applied.reason })
  }
  return { verdict, skipped }
}

/**
 * Uses the change that the user wants to try, without a prediction.
 * @param {{ flags: string[], env: Record<string, string> }} named
 * @param {string[]} words words of the command
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {Required<Pick<Chosen, 'fix' | 'applied'>>}
 * @throws {UsageError}
 */
function applyNamed ({ flags, env }, words, hello) {
  const flag = flags.join(' ')
  const inNodeOptions = flags.every(option =>
    hello.allowedFlags.includes(option.split('=')[0].replaceAll('_', '-'))
  )
  const nodeOptions = [process.env.NODE_OPTIONS, env.NODE_OPTIONS].filter(Boolean).join(' ')
  const variables = fromOutside(
    { env: { ...env, ...(env.NODE_OPTIONS && { NODE_OPTIONS: nodeOptions }) } },
    { command: words, hello }
  )
  const applied =
    flag === '' || 'reason' in variables
      ? variables
      : fromOutside(
        { flag, ...(inNodeOptions && { env: { NODE_OPTIONS: flag } }) },
        { command: words, hello, nodeOptions }
      )
  if ('reason' in variables) throw new UsageError(`--with: ${variables.reason}`)
  if ('reason' in applied) throw new UsageError(`--with: ${applied.reason}`)
  return {
    fix: {
      title: [flag, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
        .filter(Boolean)
        .join(' '),
      change: { ...(flag && { flag }), ...(Object.keys(env).length > 0 && { env }) },
      predicted: [],
      risk: ''
    },
    applied: { command: applied.command, env: { ...variables.env, ...applied.env } }
  }
}

module.exports = { chooseFix }

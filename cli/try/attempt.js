'use strict'

const path = require('node:path')
const { attachedVerdicts } = require('@memwatch/engine/verdicts/attached')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { headlineOf } = require('@memwatch/engine/verdicts/headline')
const { effectOf, LEAST_EFFECT } = require('@memwatch/engine/verdicts/outcome')
const { compare } = require('../comparison/compare')
const { renderComparison } = require('../comparison/render')
const { shellWord } = require('@memwatch/engine/text/shell')
const { out } = require('../program/output')

/** Exit status for each outcome of the attempt. */
const STATUS = Object.freeze({
  fixed: 0,
  compared: 0,
  nothing_confirmed: 3,
  nothing_to_apply: 4,
  not_fixed: 5,
  no_effect: 5,
  nothing_seen: 7
})

/**
 * @typedef {object} Attempt result of `memwatch try --json`
 * @property {1} schema
 * @property {keyof typeof STATUS | 'interrupted'} outcome
 * @property {string | null} interruptedBy
 * @property {{ diagnosis: string, state: string, title: string, summary: string } | null} finding
 * @property {import('@memwatch/engine/verdicts/headline').Headline | null} headline of the first
 *   run without the change; null if no process reported
 * @property {{ title: string, reason: string }[]} skipped fixes that could not be applied from
 *   outside
 * @property {import('../comparison/compare').Comparison} comparison
 * @property {string} kept folder with the retained recordings
 */

/**
 * @param {Record<'before' | 'after', import('../comparison/measure').Run[]>} runs
 * @param {import('./choose-fix').Chosen | undefined} chosen
 * @param {string} kept
 * @param {{ by?: string }} interruption
 * @returns {Attempt}
 */
function attemptOf ({ before, after }, chosen, kept, { by }) {
  const { verdict, fix, skipped = [] } = chosen ?? {}
  const first = before[0]?.target
  const comparison = compare(before, after, fix && { diagnosis: verdict?.diagnosis ?? null, fix })
  const failed = (/** @type {import('../comparison/measure').Run} */ { exit, target }) => !target || (exit?.code ?? 0) > 0 || (exit?.signal ?? 'SIGTERM') !== 'SIGTERM'
  // A suspected finding that is confirmed later is the same finding.
  const has = (/** @type {import('../comparison/measure').Run} */ { target }) =>
    target && findCase(target).verdicts.some(({ diagnosis, state }) =>
      diagnosis === verdict?.diagnosis && (state === 'confirmed' || state === verdict.state))
  const fixed = !after.some(has) && (!after.some(failed) || before.some(failed))
  const promised = comparison.fix?.outcomes[0]
  const helped = promised === undefined || (effectOf(promised) ?? 1) >= LEAST_EFFECT
  return {
    schema: 1,
    outcome: by
      ? 'interrupted'
      : !first
          ? 'nothing_seen'
          : !verdict
              ? fix && !after.some(failed)
                ? 'compared'
                : fix
                  ? 'not_fixed'
                  : 'nothing_confirmed'
              : !fix
                  ? 'nothing_to_apply'
                  : fixed
                    ? helped ? 'fixed' : 'no_effect'
                    : 'not_fixed',
    interruptedBy: by ?? null,
    finding: verdict
      ? {
          diagnosis: verdict.diagnosis,
          state: verdict.state,
          title: verdict.title,
          summary: verdict.summary
        }
      : null,
    headline: first ? headlineOf(first, attachedVerdicts(first)) : null,
    skipped,
    comparison,
    kept
  }
}

const WORDS = Object.freeze({
  interrupted: 'Interrupted: this is the result so far.',
  nothing_confirmed:
    'No finding is confirmed, so no fix was tried. --diagnosis ID tries the fix of a suspected ' +
      'one, and memwatch diagnose -v lists every check.',
  nothing_to_apply:
    'No fix can be applied from outside the app. Make the change, then measure its effect with ' +
      'memwatch compare.',
  nothing_seen:
    'No Node.js process reported, so no fix was tried. Check that the command works without ' +
      'memwatch, and runs for more than a second.',
  fixed: 'Fixed: the finding has disappeared.',
  compared: 'No finding was confirmed without the change. The table shows its effect.',
  not_fixed: 'Not fixed.',
  no_effect: 'No effect: the finding has disappeared, but the predicted effect of the fix was ' +
    'not measured.'
})

/**
 * @param {Attempt} attempt
 * @param {boolean} json
 */
function writeAttempt (attempt, json) {
  if (json) return out.json(attempt, 2)
  const { outcome, finding, headline, skipped, comparison, kept } = attempt
  const kindAt = (/** @type {string} */ name) => shellWord(path.join(kept, name))
  const again =
    comparison.after.runs.length > 0
      ? `; memwatch compare ${kindAt('before')} ${kindAt('after')}`
      : ''
  out.say(
    '',
    ...(outcome === 'nothing_confirmed' && headline ? [headline.text] : []),
    ...(finding
      ? [`${finding.title} (${finding.diagnosis}, ${finding.state}). ${finding.summary}`]
      : []),
    ...skipped.map(({ title, reason }) => `Not tried: ${title}: ${reason}.`),
    ...renderComparison(comparison),
    '',
    WORDS[outcome],
    `Kept: ${kept} (memwatch diagnose ${kindAt('before/1.ndjson.gz')}${again})`
  )
}

module.exports = { attemptOf, writeAttempt, STATUS }

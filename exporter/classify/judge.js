'use strict'

const { signals: table } = require('../signals')
const { formatSeconds } = require('../text/format')

/** Why signals of GCs may be missing. */
const UNOBSERVED = 'gcUnobservedRecentlySeconds'

/**
 * One diagnosis on one target at one moment. Missing evidence is `unknown`, never `ok`; a diagnosis that throws is
 * `unknown` too, and the others still run.
 *
 * @param {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @param {import('../signals').Signals} signals
 * @param {import('memwatch/frame').Hello} hello
 * @returns {{ judgement: import('../diagnoses/define-diagnosis').Judgement, error?: Error }}
 */
function judge (diagnosis, signals, hello) {
  try {
    if (diagnosis.scope === 'process' && hello.threadId > 0) {
      return { judgement: { state: 'unknown', summary: 'of the whole process: judged on its main thread' } }
    }
    const missing = diagnosis.requires.filter(name => signals[name] === null)
    if (missing.length > 0) {
      const unobserved = signals[UNOBSERVED] ?? 0
      const why = unobserved > 0
        ? ` (GCs were not observed for ${formatSeconds(unobserved)} lately: observing them may have caused them)`
        : ''
      return { judgement: { state: 'unknown', summary: `not known yet: ${missing.map(explain).join(', ')}${why}` } }
    }
    return { judgement: diagnosis.judge(/** @type {any} */ (signals), diagnosis.limits, hello) }
  } catch (cause) {
    const error = new Error(`the diagnosis ${diagnosis.id} failed`, { cause })
    return { judgement: { state: 'unknown', summary: error.message }, error }
  }
}

/** A signal that is missing, and when to expect it. @param {import('../signals').SignalName} name */
function explain (name) {
  const { expected } = /** @type {import('../signals').Signal} */ (table[name])
  return expected ? `${name} (${expected})` : name
}

module.exports = { judge }

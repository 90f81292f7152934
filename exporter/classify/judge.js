'use strict'

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
      return { judgement: { state: 'unknown', summary: `too little was seen yet to know ${missing.join(', ')}` } }
    }
    return { judgement: diagnosis.judge(/** @type {any} */ (signals), diagnosis.limits, hello) }
  } catch (cause) {
    const error = new Error(`the diagnosis ${diagnosis.id} failed`, { cause })
    return { judgement: { state: 'unknown', summary: error.message }, error }
  }
}

module.exports = { judge }

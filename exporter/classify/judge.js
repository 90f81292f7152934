'use strict'

/**
 * One diagnosis on one target at one moment. Missing evidence is `unknown`, never `ok`; a diagnosis that throws is
 * `unknown` too, and the others still run.
 *
 * @param {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @param {(name: import('../signals').SignalName) => number | null} read
 * @param {import('memwatch/frame').Hello} hello
 * @returns {{ judgement: import('../diagnoses/define-diagnosis').Judgement, signals: Record<string, number | null>, error?: Error }}
 */
function judge (diagnosis, read, hello) {
  /** @type {Record<string, number | null>} */
  const signals = {}
  try {
    if (diagnosis.scope === 'process' && hello.threadId > 0) {
      return { judgement: { state: 'unknown', summary: 'of the whole process: judged on its main thread' }, signals }
    }
    for (const name of [...diagnosis.requires, ...diagnosis.uses]) signals[name] = read(name)
    const missing = diagnosis.requires.filter(name => signals[name] === null)
    if (missing.length > 0) {
      return { judgement: { state: 'unknown', summary: `too little was seen yet to know ${missing.join(', ')}` }, signals }
    }
    return { judgement: diagnosis.judge(/** @type {any} */ (signals), diagnosis.limits, hello), signals }
  } catch (cause) {
    const error = new Error(`the diagnosis ${diagnosis.id} failed`, { cause })
    return { judgement: { state: 'unknown', summary: error.message }, signals, error }
  }
}

module.exports = { judge }

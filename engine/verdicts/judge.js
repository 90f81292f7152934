'use strict'

const { missingOf, signals: table } = require('../signals')
const { nameOf } = require('../signals/names')
const { formatSeconds } = require('../text/format')

/** Signal that explains missing signals of GCs. */
const UNOBSERVED = 'gcUnobservedRecentlySeconds'

/**
 * Time after which an absent field stays absent: agents send every field at least once a minute.
 */
const ABSENT_AFTER_SECONDS = 120

/**
 * Judges one diagnosis on one target at one moment. Missing evidence is `unknown`, never `ok`. A
 * diagnosis that throws is `unknown` too, and the others still run.
 *
 * @param {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @param {import('../signals').Signals} signals
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {{ judgement: import('../diagnoses/define-diagnosis').Judgement, error?: Error }}
 */
function judge (diagnosis, signals, hello) {
  try {
    if (diagnosis.scope === 'process' && hello.threadId > 0) {
      const summary = 'of the whole process: evaluated on its main thread'
      return { judgement: { state: 'unknown', openUntil: 'main_thread', summary } }
    }
    const missing = missingOf(signals, diagnosis.requires)
    if (missing.length > 0) {
      const unobserved = signals[UNOBSERVED] ?? 0
      // The agent will resume observing GCs after a while.
      const openUntil = unobserved > 0 ? 'readings' : openUntilOf(missing, signals, hello)
      const known = openUntil === 'readings' ? 'not known yet' : 'not known here'
      const why =
        unobserved > 0
          ? ` (GCs were not observed for ${formatSeconds(unobserved)} because observing them may ` +
            'have caused them)'
          : ''
      const summary = `${known}: ${explain(missing)}${why}`
      return { judgement: { state: 'unknown', openUntil, summary } }
    }
    return { judgement: diagnosis.judge(/** @type {any} */ (signals), diagnosis.limits, hello) }
  } catch (cause) {
    const error = new Error(`the diagnosis ${diagnosis.id} failed`, { cause })
    return { judgement: { state: 'unknown', openUntil: 'never', summary: error.message }, error }
  }
}

/**
 * Decides which requirement missing signals depend on, for example on more readings.
 * @param {readonly import('../signals').SignalName[]} missing
 * @param {import('../signals').Signals} signals
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {import('../diagnoses/define-diagnosis').OpenUntil}
 */
function openUntilOf (missing, signals, { threadId }) {
  const rows = missing.map(name => /** @type {import('../signals').Signal} */ (table[name]))
  if (threadId > 0 && rows.some(({ onMainThread }) => onMainThread)) return 'main_thread'
  const { window } = /** @type {{ window?: import('../history/window').Window }} */ (signals)
  const watchedSeconds = window?.watchedSeconds ?? 0
  if (watchedSeconds < ABSENT_AFTER_SECONDS) return 'readings'
  return rows.some(({ afterEvent }) => !afterEvent) ? 'never' : 'readings'
}

/**
 * Names missing signals in words, grouped by the time at which they are expected.
 * @param {readonly import('../signals').SignalName[]} signals
 */
function explain (signals) {
  /** @type {Map<string | undefined, Set<string>>} */
  const byTime = new Map()
  for (const signal of signals) {
    const { expected } = /** @type {import('../signals').Signal} */ (table[signal])
    byTime.set(expected, new Set([...byTime.get(expected) ?? [], nameOf(signal)]))
  }
  return [...byTime].map(([expected, names]) =>
    `${[...names].join(', ')}${expected === undefined ? '' : ` (${expected})`}`).join('; ')
}

module.exports = { judge }

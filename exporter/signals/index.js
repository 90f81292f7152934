'use strict'

/**
 * Signals: numbers derived from a target's tracks over a window of time, each with its unit. A signal is null where the
 * tracks it needs are not there (yet).
 *
 * @typedef {'bytes' | 'bytesPerSecond' | 'seconds' | 'ratio' | 'count' | 'perSecond' | 'score'} SignalUnit
 * @typedef {object} Signal
 * @property {SignalUnit} unit
 * @property {string} help one sentence
 * @property {(window: import('../series/window').Window) => number | null} compute
 */

const signals = Object.freeze({
  ...require('./heap'),
  ...require('./gc'),
  ...require('./memory')
})

/** @typedef {keyof typeof signals} SignalName */

/**
 * Reads signals of one window, each computed once.
 * @param {import('../series/window').Window} window
 * @returns {(name: SignalName) => number | null}
 */
function signalReader (window) {
  /** @type {Map<SignalName, number | null>} */
  const known = new Map()
  return name => {
    let value = known.get(name)
    if (value === undefined) {
      value = signals[name].compute(window)
      known.set(name, value)
    }
    return value
  }
}

module.exports = { signals, signalReader }

'use strict'

/**
 * Signals: numbers derived from a target's tracks over a window of time, each with its unit. A
 * signal is null where the tracks it needs are not there (yet).
 *
 * @typedef {'bytes' | 'bytesPerSecond' | 'seconds' | 'ratio' | 'count' | 'perSecond' | 'score'}
 *   SignalUnit
 * @typedef {object} Signal
 * @property {SignalUnit} unit
 * @property {string} help one sentence
 * @property {string} [expected] when it can be known, where that is not at once
 * @property {true} [onMainThread] known on the main thread of a process only
 * @property {true} [afterEvent] known after an event that may take any time, as a major GC
 * @property {(window: import('../series/window').Window) => number | null} compute
 */

const signals = Object.freeze({
  ...require('./heap'),
  ...require('./promotion'),
  ...require('./heap-bound'),
  ...require('./lasting'),
  ...require('./gc'),
  ...require('./memory'),
  ...require('./container'),
  ...require('./buffers'),
  ...require('./resources'),
  ...require('./loop')
})

/** @typedef {keyof typeof signals} SignalName */

/**
 * The signals of one window under their names, each computed when it is first read: a judge that is
 * done after two has paid for two.
 * @typedef {{ readonly [Name in SignalName]: number | null }} Signals
 */

class LazySignals {
  /** @type {Map<string, number | null>} */
  known = new Map()

  /** @param {import('../series/window').Window} window */
  constructor (window) {
    this.window = window
  }
}

for (const [name, { compute }] of Object.entries(signals)) {
  Object.defineProperty(LazySignals.prototype, name, {
    enumerable: true,
    get () {
      let value = this.known.get(name)
      if (value === undefined) this.known.set(name, value = compute(this.window))
      return value
    }
  })
}

/**
 * @param {import('../series/window').Window} window
 * @returns {Signals}
 */
const signalsOf = window => /** @type {any} */ (new LazySignals(window))

module.exports = { signals, signalsOf }

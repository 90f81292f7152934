'use strict'

const { FIGURES } = require('./trend-signal')

/**
 * Signals: numbers derived from a target's tracks over a window of time, each with its unit. A
 * signal is null while its tracks are missing. A trend is one signal of several numbers:
 * trend-signal.js.
 *
 * @typedef {'bytes' | 'bytesPerSecond' | 'seconds' | 'ratio' | 'count' | 'perSecond' | 'score'}
 *   SignalUnit
 * @typedef {object} Signal
 * @property {SignalUnit} unit
 * @property {string} help one sentence
 * @property {string} [expected] time when it becomes known, if not at once
 * @property {true} [onMainThread] known only on the main thread of a process
 * @property {true} [afterEvent] known only after an event that may not occur for a long time, such
 *   as a major GC
 * @property {(window: import('../history/window').Window) => number | null} compute
 */

const signals = Object.freeze({
  ...require('./heap'),
  ...require('./promotion'),
  ...require('./heap-bound'),
  ...require('./standing-heap'),
  ...require('./lasting'),
  ...require('./gc'),
  ...require('./rest-freed').restFreedSignals,
  ...require('./memory'),
  ...require('./container'),
  ...require('./buffers'),
  ...require('./resources'),
  ...require('./loop'),
  ...require('./long-blocks')
})

/**
 * @template Row
 * @typedef {Row extends { figures: readonly (infer Suffix extends string)[] } ? Suffix : never}
 *   SuffixOf
 */

/**
 * @typedef {keyof typeof signals} SignalName
 * @typedef {{ [Name in SignalName]: Name extends `${infer Of}Trend` ? `${Of}${SuffixOf<typeof
 *   signals[Name]>}` : Name }[SignalName]} FigureName name of one number: a signal, or a figure of
 *   a trend
 *
 * Signals of one window by name. Each is computed on first read, so a judge causes only the work
 * for the signals that it reads.
 * @typedef {{ readonly [Name in SignalName]: ReturnType<typeof signals[Name]['compute']> }} Signals
 */

/**
 * Numbers that evidence, predictions and metrics can name.
 * @type {Readonly<Record<FigureName, { unit: SignalUnit, help: string,
 *   read: (signals: Signals) => number | null }>>}
 */
const figures = Object.freeze(Object.fromEntries(Object.entries(signals).flatMap(([name, row]) =>
  'figures' in row ? figuresOf(name, row) : [[name, { ...row, read: reader(name) }]]
)))

/**
 * @param {string} name
 * @param {import('./trend-signal').TrendSignal} trend
 */
function figuresOf (name, { what, figures }) {
  return figures.map(suffix => {
    const { of, unit, help } = FIGURES[suffix]
    /** @param {any} signals */
    const read = signals => signals[name]?.[of] ?? null
    return [name.replace(/Trend$/, suffix), { unit, help: help(what), read }]
  })
}

/** @param {string} name */
function reader (name) {
  return (/** @type {any} */ signals) => signals[name]
}

const COMPUTE = Object.values(signals).map(({ compute }) => compute)
const NONE_KNOWN = COMPUTE.map(() => undefined)
const POSITIONS = new Map(Object.keys(signals).map((name, i) => [name, i]))

class LazySignals {
  /** Computed values, in the order of the table. @type {unknown[]} */
  known = [...NONE_KNOWN]

  /** @param {import('../history/window').Window} window */
  constructor (window) {
    this.window = window
  }

  /** @param {number} i position in the table */
  at (i) {
    let value = this.known[i]
    if (value === undefined) this.known[i] = value = COMPUTE[i](this.window)
    return value
  }
}

for (const [name, i] of POSITIONS) {
  Object.defineProperty(LazySignals.prototype, name, {
    enumerable: true,
    get () {
      return this.at(i)
    }
  })
}

/**
 * Signals that are null. Every evaluation reads all required signals here: by position, as reading
 * a property by a variable name takes five times as long.
 * @param {Signals} signals of signalsOf
 * @param {readonly SignalName[]} names
 * @returns {SignalName[]}
 */
const missingOf = (signals, names) => {
  const lazy = /** @type {LazySignals} */ (/** @type {unknown} */ (signals))
  return names.filter(name => lazy.at(/** @type {number} */ (POSITIONS.get(name))) === null)
}

/**
 * @param {import('../history/window').Window} window
 * @returns {Signals}
 */
const signalsOf = window => /** @type {any} */ (new LazySignals(window))

module.exports = { figures, missingOf, signals, signalsOf }

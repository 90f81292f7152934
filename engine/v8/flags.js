'use strict'

/**
 * A flag as the user gave it.
 * @typedef {object} FlagSetting
 * @property {string} name with dashes
 * @property {string} value '' for a flag without a value
 * @property {'nodeOptions' | 'execArgv'} place
 */

/**
 * Flags of a process in order of precedence: NODE_OPTIONS first, then the command line, which wins.
 * V8 accepts underscores for dashes, and both `--flag=value` and `--flag value`.
 *
 * @param {Pick<import('@memwatch/agent/protocol/frame').Hello, 'nodeOptions' | 'execArgv'>} hello
 * @returns {FlagSetting[]}
 */
function flagSettings (hello) {
  return /** @type {const} */ (['nodeOptions', 'execArgv']).flatMap(place =>
    hello[place].flatMap((arg, i, args) => {
      if (!arg.startsWith('--')) return []
      const [name, ...value] = arg.split('=')
      const next = args[i + 1]
      const separate = value.length === 0 && next !== undefined && !next.startsWith('-') ? next : ''
      return [{
        name: name.replaceAll('_', '-'),
        value: value.length > 0 ? value.join('=') : separate,
        place
      }]
    })
  )
}

/**
 * Parsed flags, cached because every evaluation reads them and they never change.
 * @type {WeakMap<object, Map<string, string>>}
 */
const known = new WeakMap()

/**
 * Effective flags of a process: the last value of each flag.
 * @param {Pick<import('@memwatch/agent/protocol/frame').Hello, 'nodeOptions' | 'execArgv'>} hello
 * @returns {ReadonlyMap<string, string>} values by flag name, with dashes; '' for a flag without a
 *   value
 */
function flagsInForce (hello) {
  let flags = known.get(hello)
  if (!flags) {
    known.set(hello, flags = new Map(flagSettings(hello).map(({ name, value }) => [name, value])))
  }
  return flags
}

/**
 * @param {ReadonlyMap<string, string>} flags
 * @param {string} name
 * @returns {number | undefined} the flag's value in MB, if it is a number
 */
function flagMegabytes (flags, name) {
  const value = Number(flags.get(name) || NaN)
  return Number.isFinite(value) && value > 0 ? value : undefined
}

module.exports = { flagSettings, flagsInForce, flagMegabytes }

'use strict'

/**
 * The flags in force in a process: NODE_OPTIONS first, then the command line, which wins (Node's
 * own order). V8 takes underscores for dashes, and both `--flag=value` and `--flag value`.
 *
 * @param {Pick<import('@memwatch/agent/protocol/frame').Hello, 'nodeOptions' | 'execArgv'>} hello
 * @returns {Map<string, string>} flag with dashes → its last value, '' when it has none
 */
function flagsInForce ({ nodeOptions, execArgv }) {
  const flags = new Map()
  for (const args of [nodeOptions, execArgv]) {
    args.forEach((arg, i) => {
      if (!arg.startsWith('--')) return
      const [name, ...value] = arg.split('=')
      const next = args[i + 1]
      const separate = value.length === 0 && next !== undefined && !next.startsWith('-') ? next : ''
      flags.set(name.replaceAll('_', '-'), value.length > 0 ? value.join('=') : separate)
    })
  }
  return flags
}

/**
 * @param {Map<string, string>} flags
 * @param {string} name
 * @returns {number | undefined} the flag's value in MB, where it is a number
 */
function flagMegabytes (flags, name) {
  const value = Number(flags.get(name) || NaN)
  return Number.isFinite(value) && value > 0 ? value : undefined
}

module.exports = { flagsInForce, flagMegabytes }

'use strict'

/**
 * Node.js flags in every form they can be given in, next to what is already set.
 *
 * @param {import('memwatch/frame').Hello} target
 * @param {Record<string, string | number>} flags each with its dashes → its value
 * @returns {import('../diagnoses/define-diagnosis').Change} only `flag` where NODE_OPTIONS would not do: this Node refuses
 *   the flag there (and would not start), or it stands on the command line, which wins
 */
function nodeFlagChange (target, flags) {
  const names = Object.keys(flags)
  const flag = names.map(name => `${name}=${flags[name]}`).join(' ')
  const onCommandLine = target.execArgv.some(option => names.includes(nameOf(option)))
  if (onCommandLine || !names.every(name => target.allowedFlags.includes(name))) return { flag }
  const options = [...otherOptions(target.nodeOptions, names).map(quoted), flag].join(' ')
  return {
    flag,
    env: { NODE_OPTIONS: options },
    dockerfile: `ENV NODE_OPTIONS=${JSON.stringify(options)}`,
    kubernetes: `env:\n  - name: NODE_OPTIONS\n    value: ${JSON.stringify(options)}`
  }
}

/** @param {string} option as given: underscores for dashes, with or without its value */
const nameOf = option => option.split('=')[0].replaceAll('_', '-')

/** As Node.js splits it again: splitNodeOptions in memwatch/identity. @param {string} option */
const quoted = option => /[\s"]/.test(option) || option === '' ? `"${option.replace(/[\\"]/g, '\\$&')}"` : option

/** @param {string | undefined} text what --require names */
const isAgent = text => text !== undefined && /(^|[/=])memwatch(\/|$)|\/agent\/index\.js$/.test(text)

/**
 * The options that preload the agent.
 * @param {readonly string[]} options
 */
const preloadOptions = options => options.filter((option, i) => isPreload(options, i))

/** @param {readonly string[]} options @param {number} i */
const isPreload = (options, i) => isAgent(options[i]) || (['--require', '-r', '--import'].includes(options[i]) && isAgent(options[i + 1]))

/**
 * What NODE_OPTIONS holds besides these flags and the preload of the agent, which whoever installed it adds again.
 * @param {string[]} options @param {string[]} names
 */
function otherOptions (options, names) {
  return options.filter((option, i) => {
    if (names.includes(nameOf(option))) return false
    if (i > 0 && names.includes(options[i - 1]) && !option.startsWith('-')) return false
    return !isPreload(options, i)
  })
}

module.exports = { nodeFlagChange, otherOptions, preloadOptions, quoted }

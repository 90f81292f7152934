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
  const options = [...otherOptions(target.nodeOptions, names), flag].join(' ')
  return {
    flag,
    env: { NODE_OPTIONS: options },
    dockerfile: `ENV NODE_OPTIONS="${options}"`,
    kubernetes: `env:\n  - name: NODE_OPTIONS\n    value: "${options}"`
  }
}

/** @param {string} option as given: underscores for dashes, with or without its value */
const nameOf = option => option.split('=')[0].replaceAll('_', '-')

/**
 * What NODE_OPTIONS holds besides these flags and the preload of the agent, which whoever installed it adds again.
 * @param {string[]} options @param {string[]} names
 */
function otherOptions (options, names) {
  return options.filter((option, i) => {
    const isPreload = (/** @type {string | undefined} */ text) => text !== undefined && /(^|[/=])memwatch(\/|$)|\/agent\/index\.js$/.test(text)
    if (names.includes(nameOf(option))) return false
    if (i > 0 && names.includes(options[i - 1]) && !option.startsWith('-')) return false
    if (['--require', '-r', '--import'].includes(option) && isPreload(options[i + 1])) return false
    return !isPreload(option)
  })
}

module.exports = { nodeFlagChange, otherOptions }

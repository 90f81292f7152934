'use strict'

/**
 * A Node.js flag in every form it can be given in, next to what is already set.
 *
 * @param {import('memwatch/frame').Hello} target
 * @param {string} flag with its dashes
 * @param {string} value
 * @returns {import('../diagnoses/define-diagnosis').Change} only `flag` where this Node refuses it in NODE_OPTIONS
 */
function nodeFlagChange (target, flag, value) {
  const setting = `${flag}=${value}`
  if (!target.allowedFlags.includes(flag)) return { flag: setting }
  const options = [...otherOptions(target.nodeOptions, flag), setting].join(' ')
  return {
    flag: setting,
    env: { NODE_OPTIONS: options },
    dockerfile: `ENV NODE_OPTIONS="${options}"`,
    kubernetes: `env:\n  - name: NODE_OPTIONS\n    value: "${options}"`
  }
}

/**
 * What NODE_OPTIONS holds besides this flag and the preload of the agent, which whoever installed it adds again.
 * @param {string[]} options @param {string} flag
 */
function otherOptions (options, flag) {
  return options.filter((option, i) => {
    const name = option.split('=')[0].replaceAll('_', '-')
    const isPreload = (/** @type {string | undefined} */ text) => text !== undefined && /(^|[/=])memwatch(\/|$)|\/agent\/index\.js$/.test(text)
    if (name === flag) return false
    if (options[i - 1] === flag && !option.startsWith('-')) return false
    if (['--require', '-r', '--import'].includes(option) && isPreload(options[i + 1])) return false
    return !isPreload(option)
  })
}

module.exports = { nodeFlagChange }

'use strict'

const { envChange } = require('./malloc')

/**
 * Turns Node.js flags into a change with all its forms, merged with the flags that are already set.
 *
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {Record<string, string | number>} flags names with dashes, and their values
 * @returns {import('../diagnoses/define-diagnosis').Change} only `flag` if NODE_OPTIONS cannot set
 *   it: this version refuses the flag there and would not start, or the command line already sets
 *   the flag and takes precedence
 */
function nodeFlagChange (target, flags) {
  const names = Object.keys(flags)
  const flag = names.map(name => `${name}=${flags[name]}`).join(' ')
  const onCommandLine = target.execArgv.some(option => names.includes(nameOf(option)))
  if (onCommandLine || !names.every(name => target.allowedFlags.includes(name))) return { flag }
  const kept = repeatable(target.nodeOptions)
  return {
    flag,
    ...envChange({
      NODE_OPTIONS: [nodeOptionsText(otherOptions(kept, names)), flag].filter(Boolean).join(' ')
    }),
    ...(kept.length < target.nodeOptions.length && {
      note: 'NODE_OPTIONS contains an option that memwatch leaves out, because options of ' +
        'Node.js do not use its characters: add it yourself.'
    })
  }
}

/** @param {string} option as given: underscores for dashes, with or without its value */
const nameOf = option => option.split('=')[0].replaceAll('_', '-')

/**
 * Joins options into a NODE_OPTIONS that Node.js splits into the same options again: at spaces,
 * except inside double quotes, with backslashes as escapes. See src/node_options.cc of Node.js, and
 * splitNodeOptions in agent/protocol/node-options.js.
 * @param {readonly string[]} options
 */
const nodeOptionsText = options =>
  options
    .map(option =>
      /[\s"]/.test(option) || option === '' ? `"${option.replace(/[\\"]/g, '\\$&')}"` : option
    )
    .join(' ')

/**
 * Characters of known Node.js options: names, numbers, paths with spaces, hosts, globs, lists.
 * Inside quotes, none of these characters starts an expansion, a substitution or another command in
 * a shell, a Dockerfile, a manifest or a template.
 */
const OPTION = /^[\p{L}\p{M}\p{N} "\\_./:=,@%+~!*?#^[\]-]*$/u

/**
 * Options that a fix may repeat. An option and its value are kept or dropped together.
 * @param {readonly string[]} options
 */
function repeatable (options) {
  const isValue = (/** @type {number} */ i) =>
    i > 0 && i < options.length && !options[i].startsWith('-')
  return options.filter(
    (option, i) =>
      OPTION.test(option) &&
      (isValue(i) ? OPTION.test(options[i - 1]) : !isValue(i + 1) || OPTION.test(options[i + 1]))
  )
}

/** Tells if --require names the agent. @param {string | undefined} text value of --require */
const isAgent = text =>
  text !== undefined && /(^|[/=@])memwatch(\/|$)|\/agent\/index\.js$/.test(text)

/**
 * Options that preload the agent.
 * @param {readonly string[]} options
 */
const preloadOptions = options => options.filter((option, i) => isPreload(options, i))

/**
 * @param {readonly string[]} options
 * @param {number} i
 */
const isPreload = (options, i) =>
  isAgent(options[i]) ||
  (['--require', '-r', '--import'].includes(options[i]) && isAgent(options[i + 1]))

/**
 * Options of NODE_OPTIONS except these flags and the preload of the agent. The installer of the
 * agent adds its preload again.
 * @param {string[]} options
 * @param {string[]} names
 */
function otherOptions (options, names) {
  return options.filter((option, i) => {
    if (names.includes(nameOf(option))) return false
    if (i > 0 && names.includes(options[i - 1]) && !option.startsWith('-')) return false
    return !isPreload(options, i)
  })
}

module.exports = { nodeFlagChange, otherOptions, preloadOptions, repeatable, nodeOptionsText }

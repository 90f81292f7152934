'use strict'

const { MALLOC_ENV } = require('@memwatch/agent/protocol/allocators')
const { plainFlags, splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { flagsInForce } = require('../v8/flags')

/**
 * Settings of a process, as its agent reports them, or as they are visible from outside.
 * @typedef {Pick<import('@memwatch/agent/protocol/frame').Hello,
 *   'nodeOptions' | 'execArgv' | 'mallocEnv' | 'libc' | 'allocator' | 'allocatorPath'>} Settings
 */

/**
 * Tells by flags and environment if a process runs with a change. A change of code is visible in
 * neither.
 * @param {import('../diagnoses/define-diagnosis').Change} change
 * @param {Settings} hello hello of the process, or the settings that are visible from outside
 * @returns {boolean | null} null if it cannot be seen
 */
function isApplied ({ flag, env }, hello) {
  if (flag) {
    const flags = flagsInForce(hello)
    return flag.split(' ').every(one => {
      const [name, value = ''] = one.split('=')
      return flags.get(name) === value
    })
  }
  if (!env) return null
  const seen = Object.entries(env).map(([name, value]) => isSet(name, value, hello))
  return seen.includes(false) ? false : seen.includes(null) ? null : true
}

/**
 * @param {string} name
 * @param {string} value
 * @param {Settings} hello
 * @returns {boolean | null} null for settings that agents do not report
 */
function isSet (name, value, hello) {
  // The loader skips a library that is missing, so its name in LD_PRELOAD proves nothing.
  if (name === 'LD_PRELOAD') {
    return (
      hello.mallocEnv.LD_PRELOAD === value &&
      (!value.includes('jemalloc') || hello.allocator === 'jemalloc')
    )
  }
  if (name === 'NODE_OPTIONS') {
    // Options in the form in which the agent reports them.
    const options = plainFlags(splitNodeOptions(value))
    return options.every(option => hello.nodeOptions.includes(option))
  }
  return MALLOC_ENV.includes(name) ? hello.mallocEnv[name] === value : null
}

module.exports = { isApplied }

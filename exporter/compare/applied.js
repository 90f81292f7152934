'use strict'

const { flagsInForce } = require('../v8/flags')

/**
 * Whether a process runs with a change: its flags and environment say so. What is changed in code leaves no trace in either.
 * @param {import('../diagnoses/define-diagnosis').Change} change @param {import('memwatch/frame').Hello} hello
 * @returns {boolean | null} null where it cannot be seen
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
  return Object.entries(env).every(([name, value]) => name === 'LD_PRELOAD'
    // That it is asked for does not mean that the loader found it.
    ? hello.mallocEnv.LD_PRELOAD === value && (!value.includes('jemalloc') || hello.allocator === 'jemalloc')
    : hello.mallocEnv[name] === value)
}

module.exports = { isApplied }

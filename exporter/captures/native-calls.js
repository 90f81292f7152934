'use strict'

const { originOf, ownerOf } = require('./call-frames')
const { cpuSites } = require('./cpu-sites')
const { packageOf } = require('@memwatch/engine/text/code-owner')

/** The profiler's names for states of the thread and for regular expressions of V8. */
const NO_CALL = /^\(|^RegExp: /
/**
 * Builtin modules whose native objects may retain memory. Other modules call native code mostly for
 * input and output, which any server spends its native time on.
 */
const RETAINING = /^node:(?:internal\/)?_?(?:buffer|crypto|messag|sqlite|tls|vm|webstorage|worker|zlib)/

/**
 * Finds calls of native code that may retain native memory: of addons and of Node.js, without its
 * functions for input and output. Used if no JavaScript object owns the growing memory, such as
 * messages that wait in a queue, or rows of an in-memory database.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
const nativeCalls = (profile, agentFolder) => cpuSites(profile, agentFolder, stack => {
  const [{ callFrame: called }] = stack
  if (originOf(called) !== 'native' || NO_CALL.test(called.functionName)) return null
  const { owner, callees } = ownerOf(stack)
  const isRetaining = callees.every(({ callFrame }) =>
    originOf(callFrame) !== 'node' || RETAINING.test(callFrame.url))
  if (!owner || !isRetaining) return null
  const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  const via = dependency ? packageOf(dependency.callFrame.url) : null
  return { callFrame: owner.callFrame, via, call: called.functionName }
})

module.exports = { nativeCalls }

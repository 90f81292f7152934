'use strict'

const { isWebAssembly, originOf, ownerOf } = require('./call-frames')
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
 * Functions of Node.js whose own time is that of the native function they call: V8 shows no frame
 * for it. Elsewhere, as in node:buffer, the own time may be that of ordinary JavaScript.
 */
const ONLY_CALLS_NATIVE = /^node:internal\/worker$/

/**
 * The native function that JavaScript called. WebAssembly has a frame for each of its functions,
 * and only the first one is called by name.
 * @param {{ callFrame: import('./call-frames').CallFrame }[]} stack frames, the innermost first
 */
function entryOf (stack) {
  const caller = stack.findIndex(({ callFrame }) => originOf(callFrame) !== 'native')
  const entry = stack.slice(0, caller).findLast(({ callFrame }) => isWebAssembly(callFrame))
  return (entry ?? stack[0]).callFrame
}

/**
 * Finds calls of native code that may retain native memory: of addons, of WebAssembly and of
 * Node.js, without its functions for input and output. Used if no JavaScript object owns the
 * growing memory, such as messages that wait in a queue, or rows of an in-memory database.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
const nativeCalls = (profile, agentFolder) => cpuSites(profile, agentFolder, stack => {
  const [{ callFrame: called }] = stack
  const isNative = originOf(called) === 'native' && !NO_CALL.test(called.functionName)
  if (!isNative && !ONLY_CALLS_NATIVE.test(called.url)) return null
  const { owner, callees } = ownerOf(stack)
  const isRetaining = callees.every(({ callFrame }) =>
    originOf(callFrame) !== 'node' || RETAINING.test(callFrame.url))
  if (!owner || !isRetaining) return null
  const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  const via = dependency ? packageOf(dependency.callFrame.url) : null
  return { callFrame: owner.callFrame, via, call: entryOf(stack).functionName }
})

module.exports = { nativeCalls }

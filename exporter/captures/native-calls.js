'use strict'

const { isOfAgent, nameOf, originOf, ownerOf, pathOf } = require('./call-frames')
const { packageOf } = require('@memwatch/engine/text/code-owner')
const { stacksOf } = require('./cpu-suspects')

/**
 * A line of the app, or of a package, that calls native code.
 * @typedef {object} NativeCallSite
 * @property {string} function
 * @property {string} file
 * @property {number} line from 1, where the function begins
 * @property {number} column from 1
 * @property {number} seconds time in the native function
 * @property {number} share of the time in all native functions that may retain memory
 * @property {string | null} via package that makes the call
 * @property {string} call name of the native function
 */

/** The profiler's names for states of the thread and for regular expressions of V8. */
const NO_CALL = /^\(|^RegExp: /
/**
 * Builtin modules whose native objects may retain memory. Other modules call native code mostly for
 * input and output, which any server spends its native time on.
 */
const RETAINING = /^node:(?:internal\/)?_?(?:buffer|crypto|messag|sqlite|tls|vm|webstorage|worker|zlib)/
/** A site needs this many samples and this share of the time to be named. */
const LEAST_SAMPLES = 4
const LEAST_SHARE = 0.15

/**
 * Finds calls of native code that may retain native memory: of addons and of Node.js, without its
 * functions for input and output. Used if no JavaScript object owns the growing memory, such as
 * messages that wait in a queue, or rows of an in-memory database.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 * @returns {{ totalSeconds: number, sites: NativeCallSite[] }} sites, most time first
 */
function nativeCalls (profile, agentFolder) {
  const stackOf = stacksOf(profile)
  /** @type {Map<string, Omit<NativeCallSite, 'share'> & { samples: number }>} */
  const sites = new Map()
  let totalSeconds = 0
  profile.samples.forEach((id, i) => {
    const stack = stackOf(id)
    const [{ callFrame: called }] = stack
    if (originOf(called) !== 'native' || NO_CALL.test(called.functionName)) return
    const { owner, callees } = ownerOf(stack)
    const isRetaining = callees.every(({ callFrame }) =>
      originOf(callFrame) !== 'node' || RETAINING.test(callFrame.url))
    if (!owner || !isRetaining || isOfAgent(stack, agentFolder)) return
    const { callFrame } = owner
    const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
    const via = dependency ? packageOf(dependency.callFrame.url) : null
    const { url, lineNumber, columnNumber } = callFrame
    const key = JSON.stringify([url, lineNumber, columnNumber, via, called.functionName])
    let site = sites.get(key)
    if (!site) {
      site = {
        function: nameOf(callFrame),
        file: pathOf(url),
        line: lineNumber + 1,
        column: columnNumber + 1,
        seconds: 0,
        samples: 0,
        via,
        call: called.functionName
      }
      sites.set(key, site)
    }
    const seconds = Math.max(0, profile.timeDeltas[i + 1] ?? 0) / 1e6
    site.seconds += seconds
    site.samples++
    totalSeconds += seconds
  })
  return {
    totalSeconds,
    sites: [...sites.values()]
      .filter(({ samples, seconds }) =>
        samples >= LEAST_SAMPLES && seconds >= LEAST_SHARE * totalSeconds)
      .map(({ samples, ...site }) => ({ ...site, share: site.seconds / totalSeconds }))
      .sort((a, b) => b.seconds - a.seconds)
  }
}

module.exports = { nativeCalls }

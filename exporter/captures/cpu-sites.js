'use strict'

const { addAmount, callerOf, isOfAgent, mainName, nameOf, pathOf } = require('./call-frames')
const { stacksOf } = require('./cpu-suspects')

/**
 * A function that takes a part of a certain kind of CPU time.
 * @typedef {object} CpuTimeSite
 * @property {string} function
 * @property {string} file
 * @property {number} line from 1, where the function begins
 * @property {number} column from 1
 * @property {number} seconds
 * @property {number} share of all time of this kind
 * @property {string | null} via package that acts for the function
 * @property {string | null} call native function that it calls
 * @property {string | null} within for a function without a name: a named caller in its file
 *
 * @typedef {Pick<CpuTimeSite, 'via' | 'call'> & { callFrame: import('./call-frames').CallFrame }}
 *   Picked
 */

/** @typedef {{ samples: number, callers: Map<string, number> }} Gathered callers: seconds */

/** A site needs this many samples and this share of the time to be named. */
const LEAST_SAMPLES = 4
const LEAST_SHARE = 0.15

/**
 * Sums up one kind of CPU time by function.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string | undefined} agentFolder
 * @param {(stack: import('./cpu-suspects').CpuNode[]) => Picked | null} pick selects the function to
 *   which a sample belongs, from its stack with the innermost frame first; null for time of another
 *   kind
 * @returns {{ totalSeconds: number, sites: CpuTimeSite[] }} sites that stand out, most time first
 */
function cpuSites (profile, agentFolder, pick) {
  const stackOf = stacksOf(profile)
  /** @type {Map<string, Omit<CpuTimeSite, 'share' | 'within'> & Gathered>} */
  const sites = new Map()
  let totalSeconds = 0
  profile.samples.forEach((id, i) => {
    const stack = stackOf(id)
    const picked = pick(stack)
    if (!picked || isOfAgent(stack, agentFolder)) return
    const { callFrame, via, call } = picked
    const { url, lineNumber, columnNumber } = callFrame
    const key = JSON.stringify([url, lineNumber, columnNumber, via, call])
    let site = sites.get(key)
    if (!site) {
      site = {
        function: nameOf(callFrame),
        file: pathOf(url),
        line: lineNumber + 1,
        column: columnNumber + 1,
        seconds: 0,
        samples: 0,
        callers: new Map(),
        via,
        call
      }
      sites.set(key, site)
    }
    // A sample stands for the time until the next one.
    const seconds = Math.max(0, profile.timeDeltas[i + 1] ?? 0) / 1e6
    site.seconds += seconds
    site.samples++
    addAmount(site.callers, callerOf(stack, callFrame), seconds)
    totalSeconds += seconds
  })
  return {
    totalSeconds,
    sites: [...sites.values()]
      .filter(({ samples, seconds }) =>
        samples >= LEAST_SAMPLES && seconds >= LEAST_SHARE * totalSeconds)
      .map(({ samples, callers, ...site }) => ({
        ...site, share: site.seconds / totalSeconds, within: mainName(callers)
      }))
      .sort((a, b) => b.seconds - a.seconds)
  }
}

module.exports = { cpuSites }

'use strict'

const { originOf, pathOf, nameOf } = require('./call-frames')
const { cpuSites } = require('./cpu-sites')

/**
 * Finds the functions of the app that run inside a function of a package. V8 may inline a handler
 * of the app into the package that calls it, and a heap profile then counts what the handler
 * allocates for the package. A CPU profile shows inlined functions as well.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {{ function: string, file: string, line: number, column: number }} outer
 * @param {string} [agentFolder]
 * @returns {import('./cpu-sites').CpuTimeSite[]} functions that run there themselves, most time
 *   first, then functions that the package calls; `share` of the time of the app's functions there
 */
function innerCalls (profile, outer, agentFolder) {
  /** @param {import('./call-frames').CallFrame} frame */
  const isOuter = frame => frame.lineNumber + 1 === outer.line &&
    frame.columnNumber + 1 === outer.column && nameOf(frame) === outer.function &&
    pathOf(frame.url) === outer.file
  /** @param {import('./cpu-suspects').CpuNode[]} stack the innermost frame first */
  const ofApp = stack => stack
    .slice(0, Math.max(0, stack.findIndex(({ callFrame }) => isOuter(callFrame))))
    .filter(({ callFrame }) => originOf(callFrame) === 'app')
  /** @param {import('./cpu-suspects').CpuNode | undefined} node */
  const pick = node => node ? { callFrame: node.callFrame, via: null, call: null } : null
  const innermost = cpuSites(profile, agentFolder, stack => pick(ofApp(stack)[0]))
  const outermost = cpuSites(profile, agentFolder, stack => pick(ofApp(stack).at(-1)))
  const found = [...innermost.sites, ...outermost.sites]
  const isFirst = (/** @type {typeof found[number]} */ site, /** @type {number} */ i) =>
    i === found.findIndex(({ file, line, column }) =>
      file === site.file && line === site.line && column === site.column)
  return found.filter(isFirst)
}

module.exports = { innerCalls }

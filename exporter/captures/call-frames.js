'use strict'

const { fileURLToPath } = require('node:url')
const {
  isWebAssembly: isWebAssemblyFile, originOf: originOfFile, packageOf
} = require('@memwatch/engine/text/code-owner')

const SEPARATORS = ['/', '\\']

/**
 * A function in a profile of the DevTools protocol, with its first line and column, counted from 0.
 * @typedef {{ functionName: string, url: string, lineNumber: number, columnNumber: number,
 *   scriptId?: string }} CallFrame
 */

/** @param {CallFrame} frame */
const originOf = ({ url }) => originOfFile(url)

/** @param {CallFrame} frame */
const isWebAssembly = ({ url }) => isWebAssemblyFile(url)

/**
 * @param {string} url of a call frame
 * @returns {string} path of the file; for other scripts the URL
 */
function pathOf (url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

/**
 * True if a stack belongs to the agent: it contains a frame of the agent.
 * @param {{ callFrame: CallFrame }[]} stack
 * @param {string | undefined} agentFolder
 */
const isOfAgent = (stack, agentFolder) =>
  agentFolder !== undefined &&
  stack.some(({ callFrame: { url } }) =>
    SEPARATORS.includes(pathOf(url)[agentFolder.length]) && pathOf(url).startsWith(agentFolder)
  )

/**
 * Name of a function; without a name, its position identifies it.
 * @param {CallFrame} frame
 */
const nameOf = ({ functionName }) => functionName === '' ? '(anonymous)' : functionName

/**
 * @param {{ callFrame: CallFrame }[]} stack frames, the innermost first
 * @param {CallFrame} frame one of them
 * @returns {string} for a function without a name: the nearest of its callers in the same file that
 *   has one, in which it is usually written; empty if there is none
 */
function callerOf (stack, frame) {
  if (frame.functionName !== '') return ''
  const at = stack.findIndex(({ callFrame }) => callFrame === frame)
  const caller = stack.slice(at + 1).find(({ callFrame }) =>
    callFrame.url === frame.url && callFrame.functionName !== '')
  return caller?.callFrame.functionName ?? ''
}

/**
 * @param {Map<string, number>} amounts by name
 * @returns {string | null} the name with the largest amount; null if it is empty, or without one
 */
const mainName = amounts => [...amounts].sort(([, a], [, b]) => b - a)[0]?.[0] || null

/**
 * @param {Map<string, number>} amounts by name
 * @param {string} name
 * @param {number} amount
 */
const addAmount = (amounts, name, amount) => amounts.set(name, (amounts.get(name) ?? 0) + amount)

/**
 * @template {{ callFrame: CallFrame }} Node
 * @param {Node[]} stack frames, the innermost first
 * @returns {{ owner: Node | undefined, callees: Node[] }} owner: the innermost frame of the app's
 *   own code, otherwise of a dependency, otherwise the function of WebAssembly that Node.js called;
 *   callees: the frames that it called, the outermost first
 */
function ownerOf (stack) {
  const at = ['app', 'dependency']
    .map(origin => stack.findIndex(({ callFrame }) => originOf(callFrame) === origin))
    .concat(stack.findLastIndex(({ callFrame }) => isWebAssembly(callFrame)))
    .find(index => index >= 0)
  return at === undefined
    ? { owner: undefined, callees: stack.slice().reverse() }
    : { owner: stack[at], callees: stack.slice(0, at).reverse() }
}

/**
 * The same for time. A package that continues later, without the app on the stack, is named by the
 * function with which it began: an app knows that one, and the time of all others is its time.
 * @template {{ callFrame: CallFrame }} Node
 * @param {Node[]} stack frames, the innermost first
 * @returns {{ owner: Node | undefined, callees: Node[] }} owner: of a dependency, the outermost of
 *   the frames of this package that follow each other
 */
function entryOf (stack) {
  const { owner, callees } = ownerOf(stack)
  const name = owner ? packageOf(owner.callFrame.url) : null
  if (!owner || name === null) return { owner, callees }
  let entry = stack.indexOf(owner)
  for (let i = entry + 1; i < stack.length; i++) {
    const { callFrame } = stack[i]
    if (packageOf(callFrame.url) === name) entry = i
    else if (originOf(callFrame) !== 'native') break
  }
  return { owner: stack[entry], callees: stack.slice(0, entry).reverse() }
}

module.exports = {
  isWebAssembly,
  originOf,
  pathOf,
  nameOf,
  ownerOf,
  entryOf,
  isOfAgent,
  callerOf,
  mainName,
  addAmount
}

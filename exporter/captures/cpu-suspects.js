'use strict'

const {
  addAmount, callerOf, entryOf, isOfAgent, mainName, nameOf, originOf, pathOf
} = require('./call-frames')
const { packageOf } = require('@memwatch/engine/text/code-owner')
const { blockingCall } = require('./blocking-calls')

/**
 * A CPU profile of the DevTools protocol; times in microseconds.
 * @typedef {{ id: number, callFrame: import('./call-frames').CallFrame, children?: number[],
 *   parent?: number, positionTicks?: { line: number, ticks: number }[] }} CpuNode
 * @typedef {{ nodes: CpuNode[], samples: number[], timeDeltas: number[] }} CpuProfile
 *
 * @typedef {object} CpuSite a consumer of the thread's time
 * @property {string} function
 * @property {string} file
 * @property {number} line line from 1: the line with most samples if the function has own time,
 *   otherwise the first line of the function
 * @property {number} column column from 1; 0 if the line was found by samples
 * @property {boolean} isLineOwn true: most of the time is spent on this line itself, and not in
 *   JavaScript that it calls
 * @property {{ line: number, column: number }} begins line where the function begins, from 1
 * @property {number} seconds
 * @property {number} share share of the thread's busy time
 * @property {number} longestSeconds longest uninterrupted time
 * @property {string | null} via package in which the time is spent
 * @property {string | null} call name of the blocking call
 * @property {string | null} instead non-blocking replacement
 * @property {string | null} within for a function without a name: a named caller in its file
 */

/** The profiler's names for the thread's own states. */
const IDLE = '(idle)'
const BETWEEN = new Set(['(garbage collector)'])
/** Shortest uninterrupted time that counts as blocking the event loop. */
const STRETCH_SECONDS = 0.02
/**
 * Share of busy time below which nothing blocks the event loop, unless a function takes so long at
 * once.
 */
const LEAST_BUSY_SHARE = 0.05
const RARE_BLOCK_SECONDS = 0.2
/**
 * V8's own work for a function, such as JSON.parse, has no frame. The line is named if most of the
 * function's time is its own time, and most of this time is spent on one line.
 */
const OWN_SHARE = 0.5
const LINE_SHARE = 0.5

/**
 * @param {CpuProfile} profile
 * @param {string} [agentFolder]
 * @returns {{ totalSeconds: number, busySeconds: number, sites: CpuSite[] }} sites, the longest
 *   block first, without the work of the agent
 */
function cpuSuspects ({ nodes, samples, timeDeltas }, agentFolder) {
  const stackOf = stacksOf({ nodes })
  /** @type {Map<number, Owned>} */
  const ownedBy = new Map()
  /** @param {number} id */
  const ownedOf = id => {
    let owned = ownedBy.get(id)
    if (!owned) ownedBy.set(id, owned = ownedIn(stackOf(id), agentFolder))
    return owned
  }
  /** @type {Map<string, Gathered>} */
  const sites = new Map()
  let busySeconds = 0
  let totalSeconds = 0
  /** @type {{ key: string, seconds: number } | undefined} */
  let stretch
  const endStretch = () => {
    const site = stretch && sites.get(stretch.key)
    if (stretch && site) {
      site.longestSeconds = Math.max(site.longestSeconds, stretch.seconds)
      if (stretch.seconds >= STRETCH_SECONDS) site.blockedSeconds += stretch.seconds
    }
    stretch = undefined
  }
  samples.forEach((id, i) => {
    // A sample stands for the time until the next one.
    const seconds = Math.max(0, timeDeltas[i + 1] ?? 0) / 1e6
    totalSeconds += seconds
    const [{ callFrame }] = stackOf(id)
    if (callFrame.functionName === IDLE && callFrame.url === '') return endStretch()
    // A GC interrupts the function that runs, so its time belongs to that function.
    if (BETWEEN.has(callFrame.functionName)) {
      busySeconds += seconds
      if (stretch) stretch.seconds += seconds
      return
    }
    const owned = ownedOf(id)
    if (owned.isAgent) return endStretch()
    busySeconds += seconds
    if (!owned.key) return endStretch()
    let site = sites.get(owned.key)
    if (!site) sites.set(owned.key, site = nothingYet(owned))
    site.seconds += seconds
    addAmount(site.callers, owned.caller, seconds)
    if (owned.own) site.ownSeconds += seconds
    if (stretch?.key !== owned.key) {
      endStretch()
      stretch = { key: owned.key, seconds: 0 }
    }
    stretch.seconds += seconds
  })
  endStretch()
  countLines(nodes, ownedBy, sites)
  const found = [...sites.values()].sort(
    (a, b) => b.blockedSeconds - a.blockedSeconds || b.seconds - a.seconds
  )
  const isBlocked = busySeconds >= LEAST_BUSY_SHARE * totalSeconds ||
    found.some(({ longestSeconds }) => longestSeconds >= RARE_BLOCK_SECONDS)
  return {
    totalSeconds, busySeconds, sites: isBlocked ? found.map(site => siteOf(site, busySeconds)) : []
  }
}

/**
 * @typedef {object} Gathered the time of one site
 * @property {Owned} owned
 * @property {number} seconds
 * @property {number} ownSeconds
 * @property {number} longestSeconds
 * @property {number} blockedSeconds
 * @property {Map<number, number>} lines ticks by line
 * @property {Map<string, number>} callers seconds by caller of a function without a name
 */

/**
 * @param {Owned} owned
 * @returns {Gathered}
 */
const nothingYet = owned => ({
  owned,
  seconds: 0,
  ownSeconds: 0,
  longestSeconds: 0,
  blockedSeconds: 0,
  lines: new Map(),
  callers: new Map()
})

/**
 * Adds the ticks of each line to the site whose own time includes them.
 * @param {CpuNode[]} nodes
 * @param {Map<number, Owned>} ownedBy
 * @param {Map<string, Gathered>} sites
 */
function countLines (nodes, ownedBy, sites) {
  for (const { id, positionTicks = [] } of nodes) {
    const owned = ownedBy.get(id)
    const site = owned?.own ? sites.get(owned.key) : undefined
    for (const { line, ticks } of positionTicks) {
      site?.lines.set(line, (site.lines.get(line) ?? 0) + ticks)
    }
  }
}

/**
 * @typedef {object} Owned
 * @property {string} key key of the site; empty if the stack contains no JavaScript of the app or
 *   its packages
 * @property {import('./call-frames').CallFrame} callFrame
 * @property {boolean} isAgent
 * @property {boolean} own true: the time is the function's own, or V8's work for the function
 * @property {string} caller see callerOf
 * @property {string | null} via
 * @property {{ call: string, instead: string } | undefined} blocking
 */

/**
 * @param {CpuNode[]} stack the innermost first
 * @param {string | undefined} agentFolder
 * @returns {Owned}
 */
function ownedIn (stack, agentFolder) {
  const { owner, callees } = entryOf(stack)
  const isAgent = isOfAgent(stack, agentFolder)
  if (!owner || isAgent) {
    return {
      key: '',
      callFrame: stack[0].callFrame,
      caller: '',
      isAgent,
      own: false,
      via: null,
      blocking: undefined
    }
  }
  const { callFrame } = owner
  const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  const used = dependency ? packageOf(dependency.callFrame.url) : null
  const via = used === packageOf(callFrame.url) ? null : used
  const called = callees.find(({ callFrame }) => originOf(callFrame) === 'node')
  const blocking = called && blockingCall(called.callFrame.functionName)
  return {
    key: JSON.stringify([
      callFrame.url,
      callFrame.lineNumber,
      callFrame.columnNumber,
      callFrame.functionName,
      via,
      blocking?.call
    ]),
    callFrame,
    caller: callerOf(stack, callFrame),
    isAgent,
    own: callees.every(({ callFrame }) => originOf(callFrame) === 'native'),
    via,
    blocking
  }
}

/**
 * @param {Gathered} site
 * @param {number} busySeconds
 * @returns {CpuSite}
 */
function siteOf (
  { owned: { callFrame, via, blocking }, seconds, ownSeconds, longestSeconds, lines, callers },
  busySeconds
) {
  const [hottest, ticks = 0] = blocking ? [] : [...lines].sort((a, b) => b[1] - a[1])[0] ?? []
  const allTicks = [...lines.values()].reduce((sum, of) => sum + of, 0)
  return {
    function: nameOf(callFrame),
    file: pathOf(callFrame.url),
    line: hottest ?? callFrame.lineNumber + 1,
    column: hottest === undefined ? callFrame.columnNumber + 1 : 0,
    isLineOwn: ownSeconds >= OWN_SHARE * seconds && ticks >= LINE_SHARE * allTicks,
    begins: { line: callFrame.lineNumber + 1, column: callFrame.columnNumber + 1 },
    seconds,
    share: busySeconds === 0 ? 0 : seconds / busySeconds,
    longestSeconds,
    via,
    call: blocking?.call ?? null,
    instead: blocking?.instead ?? null,
    within: mainName(callers)
  }
}

/**
 * @param {Pick<CpuProfile, 'nodes'>} profile
 * @returns {(id: number) => CpuNode[]} stack of a node, the innermost frame first
 */
function stacksOf ({ nodes }) {
  const byId = new Map(nodes.map(node => [node.id, node]))
  for (const { id, children = [] } of nodes) {
    for (const child of children) /** @type {CpuNode} */ (byId.get(child)).parent = id
  }
  /** @type {Map<number, CpuNode[]>} */
  const stacks = new Map()
  return id => {
    let stack = stacks.get(id)
    if (stack) return stack
    stack = []
    for (
      let node = byId.get(id);
      node;
      node = node.parent === undefined ? undefined : byId.get(node.parent)
    ) { stack.push(node) }
    stacks.set(id, stack)
    return stack
  }
}

module.exports = { cpuSuspects, stacksOf }

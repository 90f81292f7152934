'use strict'

const { LISTS_OF_ALL } = require('./dominators')
const { isOfNode } = require('./names')

/** @typedef {import('./names').Step} Step */
/** @typedef {import('./names').Names} Names */
/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/**
 * Reasons that keep a path alive, in the terms of Node.js.
 * @typedef {object} Root
 * @property {'promise' | 'timer' | 'immediate' | 'listener' | 'async_context' | 'finalization' |
 *   'module' | 'module_cache' | 'global' | 'handle' | 'stack' | 'node'} kind
 * @property {string} text
 */

/** Reason for a path on which no step names one. */
const OF_NODE = Object.freeze({
  kind: /** @type {const} */ ('node'),
  text: 'Node.js and V8 themselves'
})

/**
 * The nearest reason why a path's last node is alive.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {readonly Step[]} steps from the root
 * @returns {Root}
 */
function findRoot (graph, names, steps) {
  for (let at = steps.length - 1; at >= 0; at--) {
    const root =
      ofQueues(graph, steps, at) ?? ofListeners(graph, steps, at) ?? ofCode(graph, names, steps, at)
    if (root) return root
  }
  return OF_NODE
}

/**
 * @param {HeapGraph} graph
 * @param {readonly Step[]} steps
 * @param {number} at
 * @returns {Root | null}
 */
function ofQueues (graph, steps, at) {
  const { node, name } = steps[at]
  const from = at > 0 ? graph.nameOf(steps[at - 1].node) : ''
  switch (graph.nameOf(node)) {
    case 'system / PromiseReaction':
      return { kind: 'promise', text: 'a pending promise' }
    case 'Timeout':
    case 'TimersList':
      return { kind: 'timer', text: 'a timer of setTimeout() or setInterval()' }
    case 'Immediate':
    case 'ImmediateList':
      return { kind: 'immediate', text: 'a pending setImmediate()' }
    case 'AsyncContextFrame':
      return { kind: 'async_context', text: 'an AsyncContextFrame, the store of an AsyncLocalStorage' }
  }
  if (name === 'reactions_or_result' && from === 'Promise' && graph.typeOf(node) === 'hidden') {
    return { kind: 'promise', text: 'a pending promise' }
  }
  if (name === '<symbol kResourceStore>') {
    return { kind: 'async_context', text: 'the store of an AsyncLocalStorage on an async resource' }
  }
  if (from === 'FinalizationRegistry') {
    return { kind: 'finalization', text: 'a FinalizationRegistry' }
  }
  return null
}

/**
 * @param {HeapGraph} graph
 * @param {readonly Step[]} steps
 * @param {number} at
 * @returns {Root | null}
 */
function ofListeners (graph, steps, at) {
  const { name } = steps[at]
  const target = at > 0 ? graph.nameOf(steps[at - 1].node) : ''
  if (name === '_events') {
    const event = steps[at + 1]?.name
    return { kind: 'listener', text: `a listener of \`${event ?? '?'}\` on ${nameTarget(target, 'EventEmitter')}` }
  }
  if (name === '<symbol kEvents>' || name === '<symbol events>') {
    return { kind: 'listener', text: `a listener on ${nameTarget(target, 'EventTarget')}` }
  }
  return null
}

/**
 * @param {string} name
 * @param {string} general
 */
const nameTarget = (name, general) =>
  name === '' || name === 'Object' ? `an ${general}` : /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`

/**
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {readonly Step[]} steps
 * @param {number} at
 * @returns {Root | null}
 */
function ofCode (graph, names, steps, at) {
  const { node, name, edge } = steps[at]
  const from = at > 0 ? steps[at - 1].node : 0
  if (edge === 'context' && isModuleScope(graph, names, from)) {
    const { place } = names.userOf(from, steps, at)
    if (place === null || isOfNode(place.file)) return null
    return { kind: 'module', text: 'functions that use this variable' }
  }
  if (edge === 'property' && names.isModule(from)) {
    return { kind: 'module_cache', text: 'the module cache' }
  }
  if (LISTS_OF_ALL.includes(graph.nameOf(node))) {
    return { kind: 'handle', text: 'a handle of native code' }
  }
  if (graph.typeOf(node) === 'synthetic' && !graph.nameOf(node).startsWith('Node / ')) {
    return ofGcRoots(graph.nameOf(node))
  }
  if (graph.nameOf(node).startsWith('Node / ') && graph.nameOf(node) !== 'Node / Environment') {
    return { kind: 'handle', text: `a handle of native code (${graph.nameOf(node).slice(7)})` }
  }
  // Globals that also exist in this process are defined by Node.js itself.
  const isName = edge === 'property' && !Object.hasOwn(globalThis, name) && !isAccessor(name)
  if (isName && isGlobalObject(graph, steps, at - 1)) {
    return { kind: 'global', text: `the global variable \`${name}\`` }
  }
  return null
}

/**
 * True for a step to the global object. It comes from the root, or, since the V8 of Node.js 26,
 * from the object's context.
 * @param {HeapGraph} graph
 * @param {readonly Step[]} steps
 * @param {number} at
 */
const isGlobalObject = (graph, steps, at) =>
  (at === 0 && graph.typeOf(steps[0].node) === 'object') ||
  (at === 1 && steps[1].name === 'global_object')

/**
 * True for a getter or symbol: Node.js defines globals that are created when first read.
 * @param {string | number} name
 */
const isAccessor = name => /^([gs]et |<symbol)/.test(String(name))

/**
 * @param {string} name name of a synthetic node
 * @returns {Root | null}
 */
function ofGcRoots (name) {
  if (name === '(Global handles)' || name === '(Traced handles)') {
    return { kind: 'handle', text: 'a global handle of native code' }
  }
  if (name === '(Stack roots)' || name === '(Handle scope)') {
    return { kind: 'stack', text: 'a function that is running' }
  }
  return null
}

/**
 * True for a scope whose variables live as long as their module: no other function encloses it.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {number} scope
 */
function isModuleScope (graph, names, scope) {
  if (graph.nameOf(scope) !== 'system / Context') return false
  const outer = names.follow(scope, name => name === 'previous')
  return outer >= 0 && graph.nameOf(outer) === 'system / NativeContext'
}

module.exports = { findRoot, isModuleScope }

'use strict'

const { isOfNode } = require('./names')
const { findRoot } = require('./roots')

/** @typedef {import('./names').Step} Step */
/** @typedef {import('./names').Names} Names */
/** @typedef {import('./names').Place} Place */
/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/**
 * Holder of a pile in a developer's terms: its name, and its position in the code.
 * @typedef {object} Holder
 * @property {string} kind class of the holder: Map, Array, TimersList, function `x`, closure scope
 * @property {string | null} name name of the variable or property that leads to the holder
 * @property {'variable' | 'property' | null} nameKind
 * @property {string | null} owner class of the object that has the property
 * @property {Place | null} place
 */

/** Parts of a Map, an Array and an object, which are reported as the whole. */
const PART_TYPES = new Set(['array', 'hidden', 'object shape'])
/** Upper bound of nodes below a pile's member that are searched for a function of the app. */
const MOST_HELD = 400
/**
 * Number of steps below the holder that may name the root: a reaction of a promise, a cell of a
 * registry.
 */
const STEPS_BELOW = 2
/** Timers of one duration are a linked list. */
const TIMER_LINKS = new Set(/** @type {(string | number)[]} */ (['_idleNext', '_idlePrev']))
const SCOPE = 'system / Context'

/**
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {readonly Step[]} steps steps from the root to the holder of a pile
 * @param {readonly Step[]} below steps from there to a member of the pile
 * @returns {{ holder: Holder, root: import('./roots').Root, at: number }} at: index of the step
 *   that leads to the holder; -1 if the root is the holder
 */
function describeHolder (graph, names, steps, below) {
  let at = steps.length - 1
  while (at > 0 && isPart(graph, steps[at])) at--
  const root = findRoot(graph, names, [...steps, ...below.slice(0, STEPS_BELOW)])
  if (at < 0) return { holder: NOBODY, root, at }
  if (graph.typeOf(steps[at].node) === 'synthetic') return { holder: NOBODY, root, at }
  const isList = graph.nameOf(steps[at].node) === 'TimersList'
  const { name, nameKind, owner } = isList ? NOBODY : findName(graph, names, steps, at)
  return {
    holder: {
      kind: isList ? 'the timers' : names.kindOf(steps[at].node),
      name,
      nameKind,
      owner,
      place: findPlace(graph, names, steps, at)
    },
    root,
    at
  }
}

/** @type {Holder} */
const NOBODY = Object.freeze({
  kind: 'native code',
  name: null,
  nameKind: null,
  owner: null,
  place: null
})

/**
 * @param {HeapGraph} graph
 * @param {Step} step
 */
const isPart = (graph, { node, name }) =>
  (PART_TYPES.has(graph.typeOf(node)) && graph.nameOf(node) !== 'system / PromiseReaction') ||
  TIMER_LINKS.has(name) ||
  // Listeners of an EventTarget are a linked list.
  (name === 'next' && graph.nameOf(node) === 'Listener')

/**
 * Finds the nearest variable or property that leads to a node, through elements and entries.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {readonly Step[]} steps
 * @param {number} from index of the step that leads to the node
 * @returns {Pick<Holder, 'name' | 'nameKind' | 'owner'>}
 */
function findName (graph, names, steps, from) {
  for (let at = from; at > 0; at--) {
    const { edge, name } = steps[at]
    const source = steps[at - 1].node
    if (edge === 'context') {
      const { closure } = names.userOf(source, steps, at)
      const owner = closure < 0 ? null : names.classOf(closure)
      return { name: String(name), nameKind: 'variable', owner }
    }
    if (edge === 'property' && name !== '_events') {
      return { name: String(name), nameKind: 'property', owner: names.kindOf(source) }
    }
    const isScope = graph.nameOf(source) === SCOPE
    if (isScope && edge === 'hidden') break
    if (edge === 'hidden' && graph.typeOf(source) === 'synthetic') break
  }
  return { name: null, nameKind: null, owner: null }
}

/**
 * Finds the place of the code that holds a node: the function that uses the variable, the class
 * with the property, or the module that exports it.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {readonly Step[]} steps
 * @param {number} from index of the step that leads to the node
 * @returns {Place | null}
 */
function findPlace (graph, names, steps, from) {
  for (let at = from; at >= 0; at--) {
    const { node, edge } = steps[at]
    const source = at > 0 ? steps[at - 1].node : 0
    if (at < from || graph.typeOf(node) === 'closure') {
      const place = names.placeOf(node)
      if (place && !isOfNode(place.file)) return place
    }
    if (edge === 'context' || graph.nameOf(source) === SCOPE) {
      const { place } = names.userOf(source, steps, at)
      if (place) return place
    }
    if (names.isModule(node)) return names.fileOfModule(node)
    if (graph.nameOf(node) === 'TimersList') return null
  }
  return null
}

/**
 * Finds the place of the first function of the app among the nodes that a node keeps alive.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {import('./dominators').Dominators} dominators
 * @param {number} member
 * @returns {Place | null}
 */
function findPlaceOfHeld (graph, names, { firstChild, children }, member) {
  const open = [member]
  for (let i = 0; i < open.length && i < MOST_HELD; i++) {
    const node = open[i]
    const place = names.placeOf(node)
    if (place && !isOfNode(place.file)) return place
    const end = firstChild[node + 1]
    for (let k = firstChild[node]; k < end && open.length < MOST_HELD; k++) {
      open.push(children[k])
    }
  }
  return null
}

module.exports = { describeHolder, findPlaceOfHeld }

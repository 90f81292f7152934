'use strict'

const { FUNCTIONS, nameOf, namesOf, nodesIn, rootOf } = require('./source-tree')

/** Questions about a function, answered by its source: does it allocate, does it retain? */

/** Names of methods that retain their arguments. */
const KEEPING = new Set([
  'push',
  'unshift',
  'set',
  'add',
  'on',
  'once',
  'addListener',
  'prependListener',
  'addEventListener',
  'setInterval',
  'setTimeout'
])
/** Names of such methods that retain them until one event. */
const ENDING = new Set(['once', 'setTimeout'])
/** Types of nodes that create objects or strings of some size. */
const ALLOCATING = new Set([
  'ObjectExpression',
  'ArrayExpression',
  'NewExpression',
  'TemplateLiteral',
  'ClassExpression'
])
/** Names of built-in methods that enlarge an object, even if their result is not used. */
const ENLARGING = new Set(['assign', 'defineProperties', 'defineProperty', 'fill', 'splice'])
/**
 * Names of built-in functions that create an object, a string or native memory with each call.
 */
const CREATING = new Set([
  'alloc', 'allocUnsafe', 'allocUnsafeSlow', 'concat', 'create', 'entries', 'filter', 'flat',
  'flatMap', 'from', 'fromEntries', 'keys', 'map', 'match', 'matchAll', 'parse', 'repeat',
  'slice', 'split', 'stringify', 'structuredClone', 'subarray', 'toString', 'values'
])
/** Beginning of the names of functions of Node.js that create an object. */
const CREATE = /^create[A-Z]/
/** Operators that join strings. */
const JOINING = new Set(['+', '+='])

/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Budget} Budget */

/**
 * @param {Node} node a function
 * @param {Budget} visits
 * @returns {Node[]} calls and assignments that may store a value in an object that existed before
 */
function storesIn (node, visits) {
  const inside = nodesIn(node, visits)
  const own = declaredIn(inside)
  const isOutside = (/** @type {Node} */ target) => {
    const root = rootOf(target, visits)
    return root !== '' && !own.has(root)
  }
  return inside.filter(({ type, callee, left, arguments: given }) => {
    if (type === 'AssignmentExpression') {
      return left.type === 'MemberExpression' && left.computed && isOutside(left)
    }
    if (type !== 'CallExpression' || given.length === 0) return false
    if (callee.type === 'Identifier') return KEEPING.has(callee.name)
    return KEEPING.has(nameOf(callee) ?? '') && isOutside(callee)
  })
}

/**
 * True if a store lasts until it is removed: it is no timer or listener that ends by itself.
 * @param {Node} store
 */
const isLasting = ({ callee }) => !callee || !ENDING.has(nameOf(callee) ?? '')

/**
 * True if the source of a function creates objects or strings, other than errors that it throws.
 * @param {Node} node a function
 * @param {Budget} visits
 */
const allocates = (node, visits) =>
  nodesIn(node.body, visits, isThrow).some(({ type }) => ALLOCATING.has(type))

/**
 * True if an expression creates an object, a string or native memory.
 * @param {Node} value
 */
function creates (value) {
  if (value.type !== 'CallExpression') return ALLOCATING.has(value.type) || isJoin(value)
  const name = nameOf(value.callee) ?? ''
  return CREATING.has(name) || CREATE.test(name)
}

/**
 * True unless the source of a function shows that it allocates hardly anything itself: it creates
 * and joins nothing, uses no results of functions whose source is unknown, and no callback holds
 * its variables. Calls of known functions count as nothing.
 * @param {Node} node a function
 * @param {(call: Node, own: Set<string>) => boolean} isKnown true if the source of the called
 *   function is known; own: names of the variables of the function
 * @param {Budget} visits
 */
function mayAllocate (node, isKnown, visits) {
  // Each call of such a function creates a promise or a generator.
  if (node.async || node.generator || allocates(node, visits)) return true
  const inside = nodesIn(node, visits, each => isThrow(each) || FUNCTIONS.has(each.type))
  const own = declaredIn(inside.filter(each => each === node || !FUNCTIONS.has(each.type)))
  const dropped = droppedCalls(inside, visits)
  return inside.some(each => {
    if (each === node) return false
    if (FUNCTIONS.has(each.type)) return mentions(each, own, visits)
    if (each.type === 'CallExpression') {
      const isDropped = dropped.has(each) && !ENLARGING.has(nameOf(each.callee) ?? '')
      return !isDropped && !isKnown(each, own)
    }
    return each.type === 'RestElement' || each.type === 'TaggedTemplateExpression' ||
      each.regex !== undefined || typeof each.value === 'bigint' || isJoin(each)
  })
}

/** @param {Node} node */
const isThrow = ({ type }) => type === 'ThrowStatement'

/**
 * True for a `+` that may join strings.
 * @param {Node} node
 */
const isJoin = ({ type, operator, left, right }) =>
  (type === 'BinaryExpression' || type === 'AssignmentExpression') && JOINING.has(operator) &&
  typeof left.value !== 'number' && typeof right.value !== 'number'

/**
 * @param {Node[]} nodes
 * @param {Budget} visits
 * @returns {Set<Node>} calls whose result is not used, with the calls before them in a chain
 */
function droppedCalls (nodes, visits) {
  /** @type {Set<Node>} */
  const dropped = new Set()
  for (const { type, expression } of nodes) {
    let call = type === 'ExpressionStatement' ? expression : undefined
    while (call?.type === 'CallExpression') {
      visits.spend()
      dropped.add(call)
      call = call.callee.object
    }
  }
  return dropped
}

/**
 * @param {Node} callback
 * @param {Set<string>} names
 * @param {Budget} visits
 * @returns {boolean} true if it contains one of the names, or `this`
 */
const mentions = (callback, names, visits) => nodesIn(callback, visits).some(({ type, name }) =>
  type === 'ThisExpression' || (type === 'Identifier' && names.has(name)))

/**
 * @param {Node[]} nodes
 * @returns {Set<string>} names of variables and parameters
 */
const declaredIn = nodes => new Set(nodes.flatMap(({ type, id, params }) =>
  type === 'VariableDeclarator' ? namesOf(id) : FUNCTIONS.has(type) ? params.flatMap(namesOf) : []
))

module.exports = { allocates, creates, declaredIn, isLasting, mayAllocate, storesIn }

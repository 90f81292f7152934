'use strict'

const { FUNCTIONS, nameOf, namesOf, nodesIn, rootOf } = require('./source-tree')

/** What the source of a function says about memory: what it allocates, and what it retains. */

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
/** Names of methods that call their callback before they return. */
const AT_ONCE = new Set([
  'every',
  'filter',
  'find',
  'findIndex',
  'flatMap',
  'forEach',
  'from',
  'map',
  'reduce',
  'replace',
  'some',
  'sort'
])
const JOINING = new Set(['+', '+='])
const ALLOCATING = new Set([
  'ObjectExpression',
  'ArrayExpression',
  'NewExpression',
  'TemplateLiteral',
  'ClassExpression'
])
/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Budget} Budget */

/**
 * True if a function stores a value that outlives the call, in an object that existed before.
 * @param {Node} node a function
 * @param {Budget} visits
 */
function keeps (node, visits) {
  const inside = nodesIn(node, visits)
  const isOutside = outsideOf(inside, visits)
  return inside.some(({ type, callee, left, arguments: given }) => {
    if (type === 'AssignmentExpression') {
      return left.type === 'MemberExpression' && left.computed && isOutside(left)
    }
    if (type !== 'CallExpression' || given.length === 0) return false
    if (callee.type === 'Identifier') return KEEPING.has(callee.name)
    return (
      callee.type === 'MemberExpression' && KEEPING.has(callee.property.name) && isOutside(callee)
    )
  })
}

/**
 * True if a function may retain a value in another way than `keeps` finds: in a variable or field
 * that existed before, or in a callback that another module may keep.
 * @param {Node} node a function
 * @param {(call: Node) => boolean} isKnown true if the source of the called function is known
 * @param {Budget} visits
 */
function mayKeep (node, isKnown, visits) {
  const inside = nodesIn(node, visits)
  const isOutside = outsideOf(inside, visits)
  const captures = capturesOf(inside, visits)
  return inside.some(each => {
    if (each.type === 'AssignmentExpression') return isOutside(each.left)
    return each.type === 'CallExpression' && !AT_ONCE.has(nameOf(each.callee) ?? '') &&
      !isKnown(each) && each.arguments.some(captures)
  })
}

/**
 * True if a function returns a value, or passes one to a function whose source is unknown. Either
 * may keep it.
 * @param {Node} node a function
 * @param {(call: Node) => boolean} isKnown true if the source of the called function is known
 * @param {Budget} visits
 */
function handsOn (node, isKnown, visits) {
  if (node.body.type !== 'BlockStatement') return true
  const all = nodesIn(node.body, visits)
  return outsideRanges(all, all.filter(({ type }) => FUNCTIONS.has(type))).some(each => {
    if (each.type === 'ReturnStatement') return each.argument !== null
    const isCall = each.type === 'NewExpression' ||
      (each.type === 'CallExpression' && !AT_ONCE.has(nameOf(each.callee) ?? '') && !isKnown(each))
    return isCall && each.arguments.some((/** @type {Node} */ { type }) => type !== 'Literal')
  })
}

/**
 * True if the source of a function creates objects or strings, other than errors that it throws.
 * @param {Node} node a function
 * @param {Budget} visits
 */
const allocates = (node, visits) =>
  withoutErrors(nodesIn(node.body, visits)).some(({ type }) => ALLOCATING.has(type))

/**
 * True unless the source of a function shows that it allocates hardly anything itself: it joins no
 * strings, uses no results of functions whose source is unknown, and no callback holds its
 * variables.
 * @param {Node} node a function
 * @param {(call: Node) => boolean} isKnown true if the source of the called function is known
 * @param {Budget} visits
 */
function mayAllocate (node, isKnown, visits) {
  if (allocates(node, visits)) return true
  const all = withoutErrors(nodesIn(node.body, visits))
  const callbacks = all.filter(({ type }) => FUNCTIONS.has(type))
  if (callbacks.some(capturesOf(nodesIn(node, visits), visits))) return true
  const inside = outsideRanges(all, callbacks)
  /** @type {Set<Node>} */
  const dropped = new Set()
  for (const { type, expression } of inside) {
    let call = type === 'ExpressionStatement' ? expression : undefined
    if (call?.type === 'AwaitExpression') call = call.argument
    while (call?.type === 'CallExpression') {
      dropped.add(call)
      call = call.callee.object
    }
  }
  return inside.some(each => {
    const { type, operator, left, right } = each
    if (type === 'CallExpression') return !dropped.has(each) && !isKnown(each)
    return JOINING.has(operator) && [left, right].some(({ value }) => typeof value === 'string')
  })
}

/**
 * @param {Node[]} inside all nodes of a function
 * @param {Budget} visits
 * @returns {(node: Node) => boolean} true if the root of the expression is not declared in it
 */
function outsideOf (inside, visits) {
  const own = declaredIn(inside, visits)
  return node => {
    const root = rootOf(node)
    return root !== '' && !own.has(root)
  }
}

/**
 * @param {Node[]} inside all nodes of a function
 * @param {Budget} visits
 * @returns {(node: Node) => boolean} true if the node is an inner function that holds `this`, or a
 *   variable of the function
 */
function capturesOf (inside, visits) {
  const own = declaredIn(inside, visits)
  return node => {
    if (!FUNCTIONS.has(node.type)) return false
    const nodes = nodesIn(node, visits)
    const inner = declaredIn(nodes, visits)
    return nodes.some(({ type, name }) => type === 'ThisExpression' ||
      (type === 'Identifier' && own.has(name) && !inner.has(name)))
  }
}

/**
 * @param {Node[]} nodes
 * @param {Budget} visits
 * @returns {Set<string>} names of variables and parameters
 */
const declaredIn = (nodes, visits) => new Set(nodes.flatMap(({ type, id, params }) =>
  type === 'VariableDeclarator'
    ? namesOf(id, visits)
    : FUNCTIONS.has(type) ? params.flatMap((/** @type {Node} */ each) => namesOf(each, visits)) : []
))

/**
 * @param {Node[]} nodes
 * @returns {Node[]} nodes that are in no `throw`
 */
const withoutErrors = nodes =>
  outsideRanges(nodes, nodes.filter(({ type }) => type === 'ThrowStatement'))

/**
 * @param {Node[]} nodes
 * @param {Node[]} ranges
 * @returns {Node[]} nodes that are in none of these nodes
 */
const outsideRanges = (nodes, ranges) => nodes.filter(({ start, end }) =>
  !ranges.some(range => range.start <= start && end <= range.end))

module.exports = { allocates, handsOn, keeps, mayAllocate, mayKeep }

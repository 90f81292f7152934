'use strict'

const { FUNCTIONS, nameOf, namesOf, nodesIn, variableOf } = require('./source-tree')

/** The way of values through a function: from calls, by variables, to stores and returns. */

/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Budget} Budget */

/** Classes of collections, and their methods that return what is inside, without an allocation. */
const COLLECTIONS = new Set(['Map', 'Set', 'WeakMap', 'WeakSet'])
const LOOKUPS = new Set(['get', 'has'])
/** Names of methods whose first argument is a key, or the name of an event. */
const KEYED = new Set([
  'set', 'on', 'once', 'addListener', 'prependListener', 'addEventListener'
])
/** Names of functions whose first argument is called later. */
const TIMERS = new Set(['setInterval', 'setTimeout'])
/** Names of fields that hold a number: it keeps nothing of its object. */
const NUMBERS = new Set(['length', 'size', 'byteLength'])

/**
 * @param {Node} node a function
 * @param {Budget} visits
 * @returns {Node[]} values that it returns
 */
const returnedIn = (node, visits) => node.body.type === 'BlockStatement'
  ? ownNodes(node, visits)
    .filter(({ type, argument }) => type === 'ReturnStatement' && argument)
    .map(({ argument }) => argument)
  : [node.body]

/**
 * @param {Node[]} stores calls and assignments that store values
 * @returns {Node[]} the values, without keys, names of events and delays
 */
const valuesOf = stores => stores.flatMap(({ callee, right, arguments: given }) => {
  if (!callee) return [right]
  const name = nameOf(callee) ?? ''
  if (TIMERS.has(name)) return given.slice(0, 1)
  return KEYED.has(name) ? given.slice(1) : given
})

/**
 * @param {Node[]} values expressions
 * @param {Node} node the function that contains them
 * @param {Budget} visits
 * @returns {Node[]} expressions that these values come from, also by way of variables
 */
function sourcesOf (values, node, visits) {
  const inside = ownNodes(node, visits)
  /** @type {Set<Node>} */
  const sources = new Set()
  /** @type {Set<string>} */
  const names = new Set()
  const open = [...values]
  for (let value = open.pop(); value; value = open.pop()) {
    visits.spend()
    switch (value.type) {
      case 'ConditionalExpression':
        open.push(value.consequent, value.alternate)
        break
      case 'LogicalExpression':
        open.push(value.left, value.right)
        break
      case 'AssignmentExpression':
        open.push(value.right)
        break
      case 'MemberExpression':
        if (!NUMBERS.has(nameOf(value) ?? '')) open.push(value.object)
        break
      case 'AwaitExpression':
        open.push(value.argument)
        break
      case 'Identifier':
        if (names.has(value.name)) break
        names.add(value.name)
        visits.spend(inside.length)
        open.push(...assignedTo(value.name, inside))
        break
      case 'Literal':
      case 'ThisExpression': break
      default: sources.add(value)
    }
  }
  return [...sources]
}

/**
 * @param {string} name of a variable
 * @param {Node[]} nodes
 * @returns {Node[]} values that it gets
 */
const assignedTo = (name, nodes) => nodes.flatMap(({ type, id, init, left, right }) => {
  if (type === 'VariableDeclarator' && init && namesOf(id).includes(name)) return [init]
  return type === 'AssignmentExpression' && namesOf(left).includes(name) ? [right] : []
})

/**
 * @param {Node} node a function
 * @param {Budget} visits
 * @returns {Node[]} its nodes without those of functions inside it
 */
const ownNodes = (node, visits) => nodesIn(node, visits, ({ type }) => FUNCTIONS.has(type))

/**
 * True if a call returns what a collection contains.
 * @param {Node} call
 * @param {ReadonlyMap<string, string>} instances see source-tree.js
 * @param {ReadonlySet<string>} own names of the function's own variables, which hide others
 */
function isLookup ({ callee }, instances, own) {
  if (!LOOKUPS.has(nameOf(callee) ?? '') || callee.type !== 'MemberExpression') return false
  const name = variableOf(callee.object) ?? ''
  return COLLECTIONS.has(instances.get(name) ?? '') && !own.has(name)
}

module.exports = { isLookup, returnedIn, sourcesOf, valuesOf }

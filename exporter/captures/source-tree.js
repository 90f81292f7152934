'use strict'

const path = require('node:path')
const acorn = require('acorn')

/** Functions of a source file, and a walk through its syntax, within a budget of work. */

/**
 * Depth limit of brackets: acorn parses by recursion, and V8 ends the process if it compiles a
 * regular expression of acorn with little stack left. 3,000 brackets did that.
 */
const MOST_BRACKETS = 400
const { braceL, braceR, bracketL, bracketR, dollarBraceL, parenL, parenR } = acorn.tokTypes
const OPENING = new Set([braceL, bracketL, dollarBraceL, parenL])
const CLOSING = new Set([braceR, bracketR, parenR])

/** Types of nodes that are functions. */
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** @typedef {any} Node an ESTree node with start, end and loc */
/** @typedef {{ name: string, node: Node, isMethod: boolean }} NamedFunction */
/**
 * @typedef {{ from: string, name: string, isWhole: boolean }} Import isWhole: true for a variable
 *   that holds all exports
 * @typedef {{ name: string, node: Node }} Class
 */
/**
 * @typedef {{ file: string, functions: NamedFunction[], byName: Map<string, NamedFunction[]>,
 *   imports: Map<string, Import>, instances: Map<string, string>, classes: Class[] }} Module
 *   instances: classes of variables and fields that `new` initializes, by name, such as `audit` or
 *   `this.byKey`; an empty class if they have other values as well
 */

/**
 * Error for sources that need more memory or time than a capture is worth; no function is named
 * then.
 */
class SpentError extends Error {}

/** A budget of countable work. */
class Budget {
  #left

  /** @param {number} most */
  constructor (most) {
    this.#left = most
  }

  /**
   * @param {number} [count]
   * @throws {SpentError}
   */
  spend (count = 1) {
    if ((this.#left -= count) < 0) throw new SpentError('too much to walk through')
  }
}

/**
 * @param {string} source
 * @param {Budget} tokens
 * @returns {Node | undefined}
 * @throws {SpentError}
 */
function parse (source, tokens) {
  for (const sourceType of /** @type {const} */ (['script', 'module'])) {
    let depth = 0
    try {
      return acorn.parse(source, {
        ecmaVersion: 'latest',
        sourceType,
        allowHashBang: true,
        allowReturnOutsideFunction: sourceType === 'script',
        locations: true,
        onToken: ({ type }) => {
          tokens.spend()
          if (OPENING.has(type) && ++depth > MOST_BRACKETS) throw new SpentError('too deep')
          if (CLOSING.has(type)) depth--
        }
      })
    } catch (error) {
      if (error instanceof SpentError) throw error
      // The source is not of this type, so the next type is tried.
    }
  }
}

/**
 * A node and all nodes below it.
 * @param {Node} node
 * @param {Budget} visits
 * @param {(node: Node) => boolean} [isClosed] true for nodes below it that are not entered
 * @returns {Node[]} nodes in the order of the source
 * @throws {SpentError}
 */
function nodesIn (node, visits, isClosed = () => false) {
  const found = []
  const pending = [node]
  while (pending.length > 0) {
    const next = /** @type {Node} */ (pending.pop())
    visits.spend()
    found.push(next)
    if (next !== node && isClosed(next)) continue
    const end = pending.length
    for (const key in next) {
      const child = next[key]
      if (Array.isArray(child)) for (const item of child) pushNode(item, pending)
      else pushNode(child, pending)
    }
    // The children are reversed, so that the first child is popped next.
    for (let low = end, high = pending.length - 1; low < high; low++, high--) {
      [pending[low], pending[high]] = [pending[high], pending[low]]
    }
  }
  return found
}

/**
 * @param {unknown} child field of a node: a node, a list of nodes, or another value
 * @param {Node[]} nodes
 */
function pushNode (child, nodes) {
  const { type } = /** @type {Node} */ (child ?? {})
  if (typeof type === 'string') nodes.push(child)
}

/**
 * @param {Module['functions']} functions
 * @returns {Module['byName']}
 */
function groupedByName (functions) {
  /** @type {Module['byName']} */
  const byName = new Map()
  for (const each of functions) {
    const others = byName.get(each.name)
    if (others) others.push(each)
    else byName.set(each.name, [each])
  }
  return byName
}

const METHODS = new Set(['MethodDefinition', 'Property', 'PropertyDefinition'])

/**
 * Functions in a file, with the names by which they can be called.
 * @param {Node} tree
 * @param {Budget} visits
 * @returns {Module['functions']}
 */
function functionsIn (tree, visits) {
  /** @type {Module['functions']} */
  const found = []
  const take = (/** @type {Node} */ name, /** @type {Node} */ node, isMethod = false) => {
    if (node && FUNCTIONS.has(node.type)) {
      found.push({ name: name?.name ?? name?.value ?? '', node, isMethod })
    }
  }
  for (const node of nodesIn(tree, visits)) {
    const { type, left } = node
    if (type === 'FunctionDeclaration') take(node.id, node)
    else if (type === 'VariableDeclarator') take(node.id, node.init)
    else if (METHODS.has(type)) take(node.key, node.value, true)
    else if (type === 'AssignmentExpression') {
      const isMember = left.type === 'MemberExpression'
      take(isMember ? left.property : left, node.right, isMember)
    } else if (FUNCTIONS.has(type)) found.push({ name: '', node, isMethod: true })
  }
  return found
}

/**
 * @param {Node} tree
 * @param {Budget} visits
 * @returns {Module['instances']}
 */
function instancesIn (tree, visits) {
  /** @type {Module['instances']} */
  const instances = new Map()
  /** @type {Set<string>} */
  const others = new Set()
  const take = (/** @type {string | undefined} */ name, /** @type {Node | null} */ value) => {
    if (name === undefined || !value) return
    const of = value.type === 'NewExpression' ? value.callee.name ?? '' : undefined
    if (of === undefined || (instances.get(name) ?? of) !== of) others.add(name)
    if (of !== undefined) instances.set(name, of)
  }
  // Local variables of functions hide others.
  for (const { type, id, init } of nodesIn(tree, visits, ({ type }) => FUNCTIONS.has(type))) {
    if (type === 'VariableDeclarator') take(id.name, init)
  }
  for (const { type, key, computed, value, left, right } of nodesIn(tree, visits)) {
    if (type === 'PropertyDefinition' && !computed) take(fieldOf(key), value)
    else if (type === 'AssignmentExpression') take(variableOf(left), right)
  }
  for (const name of others) if (instances.has(name)) instances.set(name, '')
  return instances
}

const CLASSES = new Set(['ClassDeclaration', 'ClassExpression'])

/**
 * @param {Node} tree
 * @param {Budget} visits
 * @returns {Class[]} classes by the names that variables and exports give them, or by their own
 */
function classesIn (tree, visits) {
  const nodes = nodesIn(tree, visits)
  /** @type {Map<Node, string>} */
  const given = new Map()
  for (const { type, id, init, left, right } of nodes) {
    if (type === 'VariableDeclarator' && init) given.set(init, id.name ?? '')
    if (type === 'AssignmentExpression') given.set(right, left.property?.name ?? left.name ?? '')
  }
  return nodes.filter(({ type }) => CLASSES.has(type))
    .map(node => ({ name: given.get(node) || (node.id?.name ?? ''), node }))
}

/**
 * @param {Module} module
 * @param {Node} node
 * @param {Budget} visits
 * @returns {Class | undefined} innermost class around a node
 */
function classAround ({ classes }, node, visits) {
  visits.spend(classes.length)
  return classes.findLast(({ node: { start, end } }) => start < node.start && node.end <= end)
}

/** @param {Node} key */
const fieldOf = ({ name }) => name === undefined ? undefined : `this.${name}`

/**
 * @param {Node} node an expression
 * @returns {string | undefined} variable or field that it names, as in `instances` of a module
 */
const variableOf = node => node.object?.type === 'ThisExpression' && !node.computed
  ? fieldOf(node.property)
  : node.name

/**
 * Imports from other files of the app, by their names in this file.
 * @param {Node} tree
 * @param {string} folder
 * @param {Budget} visits
 */
function importsIn (tree, folder, visits) {
  /** @type {Module['imports']} */
  const imports = new Map()
  for (const node of nodesIn(tree, visits)) {
    if (node.type === 'ImportDeclaration' && node.source.value.startsWith('.')) {
      for (const { type, local, imported } of node.specifiers) {
        imports.set(local.name, {
          from: path.resolve(folder, node.source.value),
          name: imported?.name ?? local.name,
          isWhole: type === 'ImportNamespaceSpecifier'
        })
      }
    }
    if (
      node.type !== 'VariableDeclarator' ||
      node.init?.callee?.name !== 'require' ||
      !String(node.init.arguments[0]?.value).startsWith('.')
    ) { continue }
    const from = path.resolve(folder, node.init.arguments[0].value)
    if (node.id.type === 'Identifier') {
      imports.set(node.id.name, { from, name: node.id.name, isWhole: true })
    }
    for (const { key, value } of node.id.properties ?? []) {
      if (key && value?.name) imports.set(value.name, { from, name: key.name, isWhole: false })
    }
  }
  return imports
}

/**
 * @param {Module} module
 * @param {{ line: number, column: number }} place
 * @returns {Node | undefined}
 */
function innermost ({ functions }, { line, column }) {
  /** @typedef {{ line: number, column: number }} Place */
  const at = (/** @type {Place} */ a, /** @type {Place} */ b) =>
    a.line - b.line || a.column - b.column
  const here = { line, column: column - 1 }
  return functions
    .map(({ node }) => node)
    .filter(({ loc }) => at(loc.start, here) <= 0 && at(here, loc.end) < 0)
    .sort((a, b) => a.end - a.start - (b.end - b.start))[0]
}

/**
 * @param {Node} node of a member expression
 * @param {Budget} visits
 * @returns {string} name of its object, or `this`
 */
function rootOf (node, visits) {
  let root = node
  while (root.type === 'MemberExpression' || root.type === 'CallExpression') {
    visits.spend()
    root = root.object ?? root.callee
  }
  return root.type === 'ThisExpression' ? 'this' : root.name ?? ''
}

/**
 * @param {Node} callee of a call
 * @returns {string | undefined} name of the called function or method
 */
function nameOf (callee) {
  if (callee.type === 'Identifier') return callee.name
  return callee.type === 'MemberExpression' && !callee.computed ? callee.property.name : undefined
}

/**
 * @param {Node | null} pattern
 * @returns {string[]} names bound by the pattern, without those in its default values
 */
function namesOf (pattern) {
  switch (pattern?.type) {
    case 'Identifier': return [pattern.name]
    case 'AssignmentPattern': return namesOf(pattern.left)
    case 'RestElement': return namesOf(pattern.argument)
    case 'ArrayPattern': return pattern.elements.flatMap(namesOf)
    case 'ObjectPattern':
      return pattern.properties.flatMap((/** @type {Node} */ each) => namesOf(each.value ?? each))
    default: return []
  }
}

module.exports = {
  Budget,
  FUNCTIONS,
  SpentError,
  classAround,
  classesIn,
  functionsIn,
  groupedByName,
  importsIn,
  innermost,
  instancesIn,
  nameOf,
  namesOf,
  nodesIn,
  parse,
  rootOf,
  variableOf
}

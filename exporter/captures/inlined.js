'use strict'

const path = require('node:path')
const acorn = require('acorn')
const { heapHeadroom } = require('../data-folder/bounded-json')

/**
 * V8's heap profiler attributes allocations of an inlined function to its caller. This file finds
 * candidates in the source: functions called from the caller, in the same file or in a file that it
 * requires by a relative path.
 */

/** Size limit of a file: parsing a larger one would block the loop for too long. */
const MOST_LENGTH = 2 ** 19
/**
 * Token limit for all sources of a capture together. A token becomes one or two nodes of some 400
 * bytes, with their positions.
 */
const MOST_TOKENS = 500_000
const TOKEN_BYTES = 400
const HEAP_SHARE = 0.5
/**
 * Limit of visited nodes for one capture: one or two seconds of work. A real file of 256 KiB needs
 * a third of them.
 */
const MOST_VISITS = 1_000_000
/** Depth of inlining: V8 also inlines callees of inlined functions. */
const DEPTH = 2
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
const ALLOCATING = new Set([
  'ObjectExpression',
  'ArrayExpression',
  'NewExpression',
  'TemplateLiteral',
  'ClassExpression'
])
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** @typedef {any} Node an ESTree node with start, end and loc */
/**
 * @typedef {{ file: string, functions: { name: string, node: Node }[], byName: Map<string, Node[]>,
 *   imports: Map<string, { from: string, name: string }> }} Module
 */
/**
 * @typedef {{ name: string, file: string, line: number, column: number, keeps: boolean }} Callee
 *   line and column from 1
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

/** Finds functions that V8 may have inlined, in the readable sources of an app. */
class InlinedCallees {
  #sourceOf
  #tokens
  #visits = new Budget(MOST_VISITS)
  /** @type {WeakMap<Node, Map<string, any>>} */
  #known = new WeakMap()
  /** @type {Map<string, Module | undefined>} */
  #modules = new Map()

  /**
   * @param {(file: string) => string | undefined} sourceOf
   * @param {{ headroomBytes?: number }} [options] headroomBytes: free bytes of the heap
   */
  constructor (sourceOf, { headroomBytes = heapHeadroom() } = {}) {
    this.#sourceOf = sourceOf
    this.#tokens = new Budget(Math.min(MOST_TOKENS, HEAP_SHARE * headroomBytes / TOKEN_BYTES))
  }

  /**
   * Finds the callee that most likely allocates the retained objects attributed to its caller.
   * @param {{ file: string, line: number, column: number }} place place of the caller, with line
   *   and column from 1
   * @param {(callee: Callee) => boolean} [mayBe] false for a callee that is no candidate
   * @returns {Callee | undefined} undefined if the caller itself retains objects, or if no callee
   *   is likelier
   */
  of (place, mayBe = () => true) {
    return this.#withinBudget(() => {
      const module = this.#moduleOf(place.file)
      const node = module && innermost(module, place)
      if (!node || keeps(node, this.#visits)) return undefined
      const found = this.#calleesOf(module, node, DEPTH).filter(mayBe)
      return (
        found.find(callee => callee.keeps) ?? (allocates(node, this.#visits) ? undefined : found[0])
      )
    })
  }

  /**
   * Finds all callees whose allocations, retained or not, may be attributed to the caller.
   * @param {{ file: string, line: number, column: number }} place place of the caller, with line
   *   and column from 1
   * @param {(callee: Callee) => boolean} [mayBe] false for a callee that is no candidate
   * @returns {Callee[]} each callee once, in the order of calls
   */
  allOf (place, mayBe = () => true) {
    /** @type {Callee[]} */
    const found = this.#withinBudget(() => {
      const module = this.#moduleOf(place.file)
      const node = module && innermost(module, place)
      return node && this.#calleesOf(module, node, DEPTH)
    }) ?? []
    /** @type {Map<string, Callee>} */
    const byPlace = new Map()
    for (const callee of found) {
      const key = `${callee.line}:${callee.column}:${callee.file}`
      if (!byPlace.has(key)) byPlace.set(key, callee)
    }
    return [...byPlace.values()].filter(mayBe)
  }

  /**
   * @template T
   * @param {() => T} find
   * @returns {T | undefined} result of `find`; undefined if the budget of the capture is used up
   */
  #withinBudget (find) {
    try {
      return find()
    } catch (error) {
      if (error instanceof SpentError) return undefined
      throw error
    }
  }

  /**
   * Callees that allocate or retain, in the order of calls.
   * @param {Module} module
   * @param {Node} caller
   * @param {number} depth
   * @returns {Callee[]}
   */
  #calleesOf (module, caller, depth) {
    if (depth === 0) return []
    /** @type {Callee[]} */
    const callees = []
    for (const call of nodesIn(caller, this.#visits).filter(
      ({ type }) => type === 'CallExpression'
    )) {
      const { callee } = call
      const name =
        callee.type === 'Identifier'
          ? callee.name
          : callee.type === 'MemberExpression'
            ? callee.property.name
            : undefined
      if (name === undefined) continue
      const imported = module.imports.get(
        callee.type === 'Identifier' ? callee.name : rootOf(callee)
      )
      const where = imported ? this.#moduleOf(imported.from) : module
      const wanted = imported && callee.type === 'Identifier' ? imported.name : name
      for (const node of where?.byName.get(wanted) ?? []) {
        if (node === caller) continue
        const found = this.#once(node, `callee ${depth}`, () =>
          this.#calleeAt(/** @type {Module} */ (where), wanted, node, depth)
        )
        this.#visits.spend(1 + found.length)
        for (const callee of found) callees.push(callee)
      }
    }
    return callees
  }

  /**
   * A called function that allocates or retains, with its own callees.
   * @param {Module} module
   * @param {string} name
   * @param {Node} node
   * @param {number} depth
   * @returns {Callee[]}
   */
  #calleeAt (module, name, node, depth) {
    const isKeeping = keeps(node, this.#visits)
    const { line, column } = node.loc.start
    const own =
      isKeeping || allocates(node, this.#visits)
        ? [{ name, file: module.file, line, column: column + 1, keeps: isKeeping }]
        : []
    return own.concat(this.#calleesOf(module, node, depth - 1))
  }

  /**
   * @template T
   * @param {Node} node
   * @param {string} what name of the cached value
   * @param {() => T} find
   * @returns {T} the value, computed once, because several calls share it
   */
  #once (node, what, find) {
    const known = this.#known.get(node) ?? new Map()
    this.#known.set(node, known)
    if (!known.has(what)) known.set(what, find())
    return known.get(what)
  }

  /**
   * @param {string} file
   * @returns {Module | undefined}
   */
  #moduleOf (file) {
    if (!this.#modules.has(file)) this.#modules.set(file, this.#parse(file))
    return this.#modules.get(file)
  }

  /**
   * @param {string} file
   * @returns {Module | undefined}
   */
  #parse (file) {
    const found = [
      file,
      `${file}.js`,
      `${file}.cjs`,
      `${file}.mjs`,
      path.join(file, 'index.js')
    ].find(name => this.#sourceOf(name) !== undefined)
    const source = found && this.#sourceOf(found)
    if (!found || !source || source.length > MOST_LENGTH) return undefined
    const tree = parse(source, this.#tokens)
    if (!tree) return undefined
    const functions = functionsIn(tree, this.#visits)
    return {
      file: found,
      functions,
      byName: groupedByName(functions),
      imports: importsIn(tree, path.dirname(found), this.#visits)
    }
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
    try {
      return acorn.parse(source, {
        ecmaVersion: 'latest',
        sourceType,
        allowHashBang: true,
        allowReturnOutsideFunction: sourceType === 'script',
        locations: true,
        onToken: () => tokens.spend()
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
 * @returns {Node[]} nodes in the order of the source
 * @throws {SpentError}
 */
function nodesIn (node, visits) {
  const found = []
  const pending = [node]
  while (pending.length > 0) {
    const next = /** @type {Node} */ (pending.pop())
    visits.spend()
    found.push(next)
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
  if (typeof child === 'object' && child !== null && typeof /** @type {Node} */ (child).type === 'string') nodes.push(child)
}

/**
 * @param {Module['functions']} functions
 * @returns {Module['byName']}
 */
function groupedByName (functions) {
  /** @type {Module['byName']} */
  const byName = new Map()
  for (const { name, node } of functions) {
    const nodes = byName.get(name)
    if (nodes) nodes.push(node)
    else byName.set(name, [node])
  }
  return byName
}

/**
 * Functions in a file, with the names by which they can be called.
 * @param {Node} tree
 * @param {Budget} visits
 */
function functionsIn (tree, visits) {
  /** @type {{ name: string, node: Node }[]} */
  const found = []
  const take = (/** @type {Node} */ name, /** @type {Node} */ node) => {
    if (node && FUNCTIONS.has(node.type)) { found.push({ name: name?.name ?? name?.value ?? '', node }) }
  }
  for (const node of nodesIn(tree, visits)) {
    if (node.type === 'FunctionDeclaration') take(node.id, node)
    else if (node.type === 'VariableDeclarator') take(node.id, node.init)
    else if (
      node.type === 'MethodDefinition' ||
      node.type === 'Property' ||
      node.type === 'PropertyDefinition'
    ) { take(node.key, node.value) } else if (node.type === 'AssignmentExpression') { take(node.left.type === 'MemberExpression' ? node.left.property : node.left, node.right) } else if (FUNCTIONS.has(node.type)) found.push({ name: '', node })
  }
  return found
}

/**
 * Imports from other files of the app, by their names in this file.
 * @param {Node} tree
 * @param {string} folder
 * @param {Budget} visits
 */
function importsIn (tree, folder, visits) {
  /** @type {Map<string, { from: string, name: string }>} */
  const imports = new Map()
  for (const node of nodesIn(tree, visits)) {
    if (node.type === 'ImportDeclaration' && node.source.value.startsWith('.')) {
      for (const { local, imported } of node.specifiers) {
        imports.set(local.name, {
          from: path.resolve(folder, node.source.value),
          name: imported?.name ?? local.name
        })
      }
    }
    if (
      node.type !== 'VariableDeclarator' ||
      node.init?.callee?.name !== 'require' ||
      !String(node.init.arguments[0]?.value).startsWith('.')
    ) { continue }
    const from = path.resolve(folder, node.init.arguments[0].value)
    if (node.id.type === 'Identifier') imports.set(node.id.name, { from, name: node.id.name })
    else {
      for (const { key, value } of node.id.properties ?? []) {
        if (key && value?.name) imports.set(value.name, { from, name: key.name })
      }
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
  const at = (/** @type {{ line: number, column: number }} */ a, /** @type {{ line: number, column: number }} */ b) => a.line - b.line || a.column - b.column
  const here = { line, column: column - 1 }
  return functions
    .map(({ node }) => node)
    .filter(({ loc }) => at(loc.start, here) <= 0 && at(here, loc.end) < 0)
    .sort((a, b) => a.end - a.start - (b.end - b.start))[0]
}

/**
 * @param {Node} node of a member expression
 * @returns {string} name of its object, or `this`
 */
function rootOf (node) {
  let root = node
  while (root.type === 'MemberExpression' || root.type === 'CallExpression') { root = root.object ?? root.callee }
  return root.type === 'ThisExpression' ? 'this' : root.name ?? ''
}

/**
 * True if a function stores a value that outlives the call, in an object that existed before.
 * @param {Node} node a function
 * @param {Budget} visits
 */
function keeps (node, visits) {
  const inside = nodesIn(node, visits)
  const namesIn = (/** @type {Node} */ pattern) => namesOf(pattern, visits)
  const own = new Set(
    inside.flatMap(({ type, id, params }) =>
      type === 'VariableDeclarator'
        ? namesIn(id)
        : FUNCTIONS.has(type)
          ? params.flatMap(namesIn)
          : []
    )
  )
  const stays = (/** @type {string} */ name) => name !== '' && !own.has(name)
  return inside.some(({ type, callee, left, arguments: given }) => {
    if (type === 'AssignmentExpression') { return left.type === 'MemberExpression' && left.computed && stays(rootOf(left)) }
    if (type !== 'CallExpression' || given.length === 0) return false
    if (callee.type === 'Identifier') return KEEPING.has(callee.name)
    return (
      callee.type === 'MemberExpression' &&
      KEEPING.has(callee.property.name) &&
      stays(rootOf(callee))
    )
  })
}

/**
 * @param {Node} node a function
 * @param {Budget} visits
 */
const allocates = (node, visits) =>
  nodesIn(node.body, visits).some(({ type }) => ALLOCATING.has(type))

/**
 * @param {Node} pattern
 * @param {Budget} visits
 * @returns {string[]} names bound by the pattern
 */
const namesOf = (pattern, visits) =>
  pattern
    ? nodesIn(pattern, visits)
      .filter(({ type }) => type === 'Identifier')
      .map(({ name }) => name)
    : []

module.exports = { InlinedCallees }

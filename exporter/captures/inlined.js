'use strict'

const path = require('node:path')
const acorn = require('acorn')

/**
 * V8's heap profiler counts what an inlined function allocates to the function that it was inlined into. Which those could be is read from the
 * source: what a function calls, in its own file or one that it requires by a relative path.
 */

/** Parsing a larger file would hold the loop for too long. */
const MOST_LENGTH = 2 ** 19
/** V8 inlines what is called by what it inlined, too. */
const DEPTH = 2
/** Calls by which something stays that is handed over. */
const KEEPING = new Set(['push', 'unshift', 'set', 'add', 'on', 'once', 'addListener', 'prependListener', 'addEventListener', 'setInterval', 'setTimeout'])
const ALLOCATING = new Set(['ObjectExpression', 'ArrayExpression', 'NewExpression', 'TemplateLiteral', 'ClassExpression'])
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** @typedef {any} Node of ESTree, with start, end and loc */
/** @typedef {{ file: string, functions: { name: string, node: Node }[], imports: Map<string, { from: string, name: string }> }} Module */
/** @typedef {{ name: string, file: string, line: number, column: number, keeps: boolean }} Callee place from 1 */

/** The functions of an app's sources, as far as they can be read. */
class InlinedCallees {
  #sourceOf
  /** @type {Map<string, Module | undefined>} */
  #modules = new Map()

  /** @param {(file: string) => string | undefined} sourceOf */
  constructor (sourceOf) {
    this.#sourceOf = sourceOf
  }

  /**
   * The function that most likely allocates what stays, in the name of another.
   * @param {{ file: string, line: number, column: number }} place of that other, from 1
   * @returns {Callee | undefined} undefined where it keeps things itself, or no callee is likelier
   */
  of (place) {
    const module = this.#moduleOf(place.file)
    const node = module && innermost(module, place)
    if (!node || keeps(node)) return undefined
    const found = this.#calleesOf(module, node, DEPTH)
    return found.find(callee => callee.keeps) ?? (allocates(node) ? undefined : found[0])
  }

  /**
   * All that may allocate in the name of another, whether it stays or not.
   * @param {{ file: string, line: number, column: number }} place of that other, from 1
   * @returns {Callee[]} each once, in the order of calls
   */
  allOf (place) {
    const module = this.#moduleOf(place.file)
    const node = module && innermost(module, place)
    const found = node ? this.#calleesOf(module, node, DEPTH) : []
    return found.filter((callee, i) => i === found.findIndex(({ file, line, column }) => file === callee.file && line === callee.line && column === callee.column))
  }

  /** Where a function ends. @param {{ file: string, line: number, column: number }} place where it begins, from 1 @returns {number | undefined} line; undefined where it cannot be read */
  lastLineOf (place) {
    const module = this.#moduleOf(place.file)
    return module && innermost(module, place)?.loc.end.line
  }

  /** Those that allocate or keep, in the order of calls. @param {Module} module @param {Node} caller @param {number} depth @returns {Callee[]} */
  #calleesOf (module, caller, depth) {
    if (depth === 0) return []
    /** @type {Callee[]} */
    const callees = []
    for (const call of nodesIn(caller).filter(({ type }) => type === 'CallExpression')) {
      const { callee } = call
      const name = callee.type === 'Identifier' ? callee.name : callee.type === 'MemberExpression' ? callee.property.name : undefined
      if (name === undefined) continue
      const imported = module.imports.get(callee.type === 'Identifier' ? callee.name : rootOf(callee))
      const where = imported ? this.#moduleOf(imported.from) : module
      const wanted = imported && callee.type === 'Identifier' ? imported.name : name
      for (const { name, node } of where?.functions.filter(found => found.name === wanted && found.node !== caller) ?? []) {
        if (keeps(node) || allocates(node)) callees.push({ name, file: /** @type {Module} */ (where).file, line: node.loc.start.line, column: node.loc.start.column + 1, keeps: keeps(node) })
        callees.push(...this.#calleesOf(/** @type {Module} */ (where), node, depth - 1))
      }
    }
    return callees
  }

  /** @param {string} file @returns {Module | undefined} */
  #moduleOf (file) {
    if (!this.#modules.has(file)) this.#modules.set(file, this.#parse(file))
    return this.#modules.get(file)
  }

  /** @param {string} file @returns {Module | undefined} */
  #parse (file) {
    const found = [file, `${file}.js`, `${file}.cjs`, `${file}.mjs`, path.join(file, 'index.js')].find(name => this.#sourceOf(name) !== undefined)
    const source = found && this.#sourceOf(found)
    if (!found || !source || source.length > MOST_LENGTH) return undefined
    const tree = parse(source)
    return tree && { file: found, functions: functionsIn(tree), imports: importsIn(tree, path.dirname(found)) }
  }
}

/** @param {string} source @returns {Node | undefined} */
function parse (source) {
  for (const sourceType of /** @type {const} */ (['script', 'module'])) {
    try {
      return acorn.parse(source, { ecmaVersion: 'latest', sourceType, allowHashBang: true, allowReturnOutsideFunction: sourceType === 'script', locations: true })
    } catch {} // not of this kind, or of no kind that is known
  }
}

/** A node and all below it. @param {Node} node @returns {Node[]} in the order of the source */
function nodesIn (node) {
  const found = [node]
  for (const key of Object.keys(node)) {
    for (const child of Array.isArray(node[key]) ? node[key] : [node[key]]) if (typeof child?.type === 'string') found.push(...nodesIn(child))
  }
  return found
}

/** Functions that can be called by a name. @param {Node} tree */
function functionsIn (tree) {
  /** @type {{ name: string, node: Node }[]} */
  const found = []
  const take = (/** @type {Node} */ name, /** @type {Node} */ node) => {
    if (node && FUNCTIONS.has(node.type)) found.push({ name: name?.name ?? name?.value ?? '', node })
  }
  for (const node of nodesIn(tree)) {
    if (node.type === 'FunctionDeclaration') take(node.id, node)
    else if (node.type === 'VariableDeclarator') take(node.id, node.init)
    else if (node.type === 'MethodDefinition' || node.type === 'Property' || node.type === 'PropertyDefinition') take(node.key, node.value)
    else if (node.type === 'AssignmentExpression') take(node.left.type === 'MemberExpression' ? node.left.property : node.left, node.right)
    else if (FUNCTIONS.has(node.type)) found.push({ name: '', node })
  }
  return found
}

/** What comes from other files of the app, by the name that it has here. @param {Node} tree @param {string} folder */
function importsIn (tree, folder) {
  /** @type {Map<string, { from: string, name: string }>} */
  const imports = new Map()
  for (const node of nodesIn(tree)) {
    if (node.type === 'ImportDeclaration' && node.source.value.startsWith('.')) {
      for (const { local, imported } of node.specifiers) imports.set(local.name, { from: path.resolve(folder, node.source.value), name: imported?.name ?? local.name })
    }
    if (node.type !== 'VariableDeclarator' || node.init?.callee?.name !== 'require' || !String(node.init.arguments[0]?.value).startsWith('.')) continue
    const from = path.resolve(folder, node.init.arguments[0].value)
    if (node.id.type === 'Identifier') imports.set(node.id.name, { from, name: node.id.name })
    else for (const { key, value } of node.id.properties ?? []) if (key && value?.name) imports.set(value.name, { from, name: key.name })
  }
  return imports
}

/** @param {Module} module @param {{ line: number, column: number }} place @returns {Node | undefined} */
function innermost ({ functions }, { line, column }) {
  const at = (/** @type {{ line: number, column: number }} */ a, /** @type {{ line: number, column: number }} */ b) => a.line - b.line || a.column - b.column
  const here = { line, column: column - 1 }
  return functions.map(({ node }) => node).filter(({ loc }) => at(loc.start, here) <= 0 && at(here, loc.end) < 0).sort((a, b) => (a.end - a.start) - (b.end - b.start))[0]
}

/** @param {Node} node of a member expression @returns {string} name of what it is a member of; this */
function rootOf (node) {
  let root = node
  while (root.type === 'MemberExpression' || root.type === 'CallExpression') root = root.object ?? root.callee
  return root.type === 'ThisExpression' ? 'this' : root.name ?? ''
}

/** Whether it puts something where it stays: into what was there before it was called. @param {Node} node a function */
function keeps (node) {
  const inside = nodesIn(node)
  const own = new Set(inside.flatMap(({ type, id, params }) => type === 'VariableDeclarator' ? namesIn(id) : FUNCTIONS.has(type) ? params.flatMap(namesIn) : []))
  const stays = (/** @type {string} */ name) => name !== '' && !own.has(name)
  return inside.some(({ type, callee, left, arguments: given }) => {
    if (type === 'AssignmentExpression') return left.type === 'MemberExpression' && left.computed && stays(rootOf(left))
    if (type !== 'CallExpression' || given.length === 0) return false
    if (callee.type === 'Identifier') return KEEPING.has(callee.name)
    return callee.type === 'MemberExpression' && KEEPING.has(callee.property.name) && stays(rootOf(callee))
  })
}

/** @param {Node} node a function */
const allocates = node => nodesIn(node.body).some(({ type }) => ALLOCATING.has(type))

/** @param {Node} pattern @returns {string[]} names that it binds */
const namesIn = pattern => pattern ? nodesIn(pattern).filter(({ type }) => type === 'Identifier').map(({ name }) => name) : []

module.exports = { InlinedCallees }

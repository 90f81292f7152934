'use strict'

const path = require('node:path')
const { EventEmitter } = require('node:events')
const { heapHeadroom } = require('../data-folder/bounded-json')
const { declaredIn } = require('./retaining-code')
const {
  Budget, classAround, classesIn, functionsIn, groupedByName, importsIn, instancesIn, nameOf,
  nodesIn, parse, rootOf, variableOf
} = require('./source-tree')

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
/** Built-in objects: a call by the name of one of their methods may call no function of the app. */
const BUILT_IN = [
  Array.prototype, Map.prototype, Set.prototype, String.prototype, Promise.prototype,
  EventEmitter.prototype, console, JSON, Object
]

/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Module} Module */
/**
 * Functions that a call may reach.
 * @typedef {object} Called
 * @property {Module} where module of the functions
 * @property {string} wanted their name there
 * @property {Node[]} nodes
 * @property {boolean} isKnown true if the call can reach no other function
 * @property {boolean} isSure true if it is unlikely to reach another one
 */

/**
 * Finds the functions that calls may reach, in the readable sources of an app: in the same file, or
 * in a file that it requires by a relative path. One object serves one capture.
 */
class CalledFunctions {
  /** Work that is left for the capture. */
  visits = new Budget(MOST_VISITS)
  #sourceOf
  #tokens
  /** @type {WeakMap<Node, Map<string, any>>} */
  #known = new WeakMap()
  /** @type {Map<string, Module | undefined>} */
  #modules = new Map()

  /**
   * @param {(file: string) => string | undefined} sourceOf
   * @param {number} [headroomBytes] free bytes of the heap
   */
  constructor (sourceOf, headroomBytes = heapHeadroom()) {
    this.#sourceOf = sourceOf
    this.#tokens = new Budget(Math.min(MOST_TOKENS, HEAP_SHARE * headroomBytes / TOKEN_BYTES))
  }

  /**
   * @param {Module} module
   * @param {Node} call in this module
   * @param {Node} caller function that contains the call
   * @returns {Called}
   */
  calledBy (module, { callee }, caller) {
    const name = nameOf(callee)
    if (name === undefined) {
      return { where: module, wanted: '', nodes: [], isKnown: false, isSure: false }
    }
    const isMember = callee.type === 'MemberExpression'
    const root = isMember ? rootOf(callee, this.visits) : name
    const imported = module.imports.get(root)
    const wanted = imported && !isMember ? imported.name : name
    const where = imported
      ? this.moduleOf(imported.from)
      : isMember ? this.#moduleWithMethod(module, callee, caller) : module
    const named = where?.byName.get(wanted) ?? []
    this.visits.spend(named.length)
    const others = named.filter(({ node }) => node !== caller)
    const ofClass = where && isMember && !imported
      ? others.filter(({ node }) => this.#isMethodOf(module, callee.object, caller, where, node))
      : []
    const found = ofClass.length > 0 ? ofClass : others
    const isKnown = imported
      ? found.length > 0 && (!isMember || imported.isWhole)
      : isMember
        ? ofClass.length > 0
        : found.length > 0 && !found.some(({ isMethod }) => isMethod)
    return {
      where: where ?? module,
      wanted,
      nodes: found.map(({ node }) => node),
      isKnown,
      isSure: isKnown || (root === 'this' && isMember && !isBuiltIn(name))
    }
  }

  /**
   * True if a function is a method of the class of an object.
   * @param {Module} module
   * @param {Node} object of a call in this module
   * @param {Node} caller function that contains the call
   * @param {Module} where module of the function
   * @param {Node} node the function
   */
  #isMethodOf (module, object, caller, where, node) {
    const around = classAround(where, node, this.visits)
    if (!around) return false
    if (object.type === 'ThisExpression') {
      return around === classAround(module, caller, this.visits)
    }
    const of = this.#classOf(module, object, caller)
    return of !== '' && around.name === (module.imports.get(of)?.name ?? of)
  }

  /**
   * @param {Module} module
   * @param {Node} object in this module
   * @param {Node} caller function that contains it
   * @returns {string} name of its class in this module; '' if it is not known
   */
  #classOf (module, object, caller) {
    const name = variableOf(object) ?? ''
    return this.ownNames(caller).has(name) ? '' : module.instances.get(name) ?? ''
  }

  /**
   * @param {Module} module
   * @param {Node} callee of a call of a method in this module
   * @param {Node} caller function that contains the call
   * @returns {Module | undefined} module of the object's class, if this is known; else this module,
   *   or one that it requires, that has a function of the method's name
   */
  #moduleWithMethod (module, callee, caller) {
    const name = nameOf(callee) ?? ''
    const imported = module.imports.get(this.#classOf(module, callee.object, caller))
    if (imported) return this.moduleOf(imported.from)
    if (module.byName.has(name) || isBuiltIn(name)) return module
    for (const from of new Set([...module.imports.values()].map(({ from }) => from))) {
      this.visits.spend()
      const other = this.moduleOf(from)
      if (other?.byName.has(name)) return other
    }
  }

  /**
   * @param {Node} node a function
   * @returns {Set<string>} names of its variables and parameters
   */
  ownNames (node) {
    return this.once(node, 'own names', () => declaredIn(nodesIn(node, this.visits)))
  }

  /**
   * @template T
   * @param {Node} node
   * @param {string} what name of the cached value
   * @param {() => T} find
   * @returns {T} the value, computed once, because several calls share it
   */
  once (node, what, find) {
    const known = this.#known.get(node) ?? new Map()
    this.#known.set(node, known)
    if (!known.has(what)) known.set(what, find())
    return known.get(what)
  }

  /**
   * @param {string} file
   * @returns {Module | undefined}
   */
  moduleOf (file) {
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
    const functions = functionsIn(tree, this.visits)
    return {
      file: found,
      functions,
      byName: groupedByName(functions),
      imports: importsIn(tree, path.dirname(found), this.visits),
      instances: instancesIn(tree, this.visits),
      classes: classesIn(tree, this.visits)
    }
  }
}

/** @param {string} name */
const isBuiltIn = name => BUILT_IN.some(object => name in object)

module.exports = { CalledFunctions }

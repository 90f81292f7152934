'use strict'

const path = require('node:path')
const { EventEmitter } = require('node:events')
const { heapHeadroom } = require('../data-folder/bounded-json')
const {
  allocates, creates, declaredIn, isLasting, mayAllocate, storesIn
} = require('./retaining-code')
const {
  Budget, SpentError, classAround, classesIn, functionsIn, groupedByName, importsIn, innermost,
  instancesIn, nameOf, nodesIn, parse, rootOf
} = require('./source-tree')
const { isLookup, returnedIn, sourcesOf, valuesOf } = require('./value-flow')

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
const DEPTH = 3
/** Built-in objects: a call by the name of one of their methods may call no function of the app. */
const BUILT_IN = [
  Array.prototype, Map.prototype, Set.prototype, String.prototype, Promise.prototype,
  EventEmitter.prototype, console, JSON, Object
]

/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Module} Module */
/**
 * @typedef {object} Callee
 * @property {string} name
 * @property {string} file
 * @property {number} line from 1
 * @property {number} column from 1
 * @property {boolean} keeps true if it stores a value that outlives the call, or if its caller
 *   stores its result
 * @property {boolean} keepsForLong other than by a timer or listener for one event
 * @property {boolean} isSure false if the call may be one of another function of the same name
 */
/**
 * Functions that a call may reach.
 * @typedef {object} Called
 * @property {Module} where module of the functions
 * @property {string} wanted their name there
 * @property {Node[]} nodes
 * @property {boolean} isKnown true if the call can reach no other function
 * @property {boolean} isSure true if it is unlikely to reach another one
 */

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
   * @returns {Callee & { isLikelier: boolean } | undefined} undefined if the caller itself retains
   *   objects, or if no callee may be responsible; isLikelier: true if the caller itself hardly
   *   allocates, so that the callee must have allocated the objects
   */
  of (place, mayBe = () => true) {
    return this.#withinBudget(() => {
      const module = this.#moduleOf(place.file)
      const node = module && innermost(module, place)
      if (!node) return undefined
      const mayOwn = this.#mayAllocate(module, node)
      const stores = this.#storesIn(module, node)
      if (stores.length > 0) {
        const values = valuesOf(stores.filter(isLasting))
        const maker = mayOwn ? undefined : this.#makerOf(values, module, node)
        return maker && mayBe(maker) ? { ...maker, isLikelier: true } : undefined
      }
      const groups = this.#groupsOf(module, node, DEPTH).map(group => group.filter(mayBe))
      const found = uniqueOf(groups.flat())
      const keepers = found.filter(callee => callee.keeps)
      if (keepers.length === 0 && allocates(node, this.#visits)) return undefined
      const lasting = keepers.filter(({ keepsForLong }) => keepsForLong)
      const callee = lasting[0] ?? keepers[0] ?? found[0]
      if (!callee) return undefined
      const isOnly = found.length === 1 || lasting.length === 1
      if (!isOnly && !isAbove(callee, groups)) return { ...callee, isLikelier: false }
      const { maker, mayAllocate } = callee.keepsForLong ? this.#lookInto(callee) : NOTHING
      return {
        ...maker && mayBe(maker) ? maker : callee,
        isLikelier: callee.isSure && !mayOwn && (isOnly || mayAllocate || maker !== undefined)
      }
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
    return uniqueOf(found).filter(mayBe)
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
   * True unless a function hardly allocates itself.
   * @param {Module} module
   * @param {Node} node
   */
  #mayAllocate (module, node) {
    return mayAllocate(node, (call, own) => isLookup(call, module.instances, own) ||
      this.#calledBy(module, call, node).isKnown, this.#visits)
  }

  /**
   * @param {Callee} keeper
   * @returns {{ maker?: Callee, mayAllocate: boolean }} maker: function that makes what it retains,
   *   if it hardly allocates itself, and if no other function may
   */
  #lookInto ({ file, line, column }) {
    const module = this.#moduleOf(file)
    const node = module && innermost(module, { line, column })
    if (!node) return NOTHING
    if (this.#mayAllocate(module, node)) return { mayAllocate: true }
    const stores = this.#storesIn(module, node).filter(isLasting)
    return { maker: this.#makerOf(valuesOf(stores), module, node), mayAllocate: false }
  }

  /**
   * @param {Module} module
   * @param {Node} node a function
   * @returns {Node[]} calls and assignments that store a value, without calls of known functions:
   *   these have stores of their own
   */
  #storesIn (module, node) {
    return storesIn(node, this.#visits).filter(store =>
      store.type === 'AssignmentExpression' || !this.#calledBy(module, store, node).isKnown)
  }

  /**
   * Finds the function that makes values.
   * @param {Node[]} values that a function stores or returns
   * @param {Module} module
   * @param {Node} node the function, which hardly allocates itself
   * @param {number} [depth]
   * @returns {Callee | undefined} undefined if no function, or more than one, may make them
   */
  #makerOf (values, module, node, depth = DEPTH) {
    const own = declaredIn(nodesIn(node, this.#visits))
    const sources = sourcesOf(values, node, this.#visits)
      .filter(source =>
        source.type !== 'CallExpression' || !isLookup(source, module.instances, own))
    if (sources.some(({ type }) => type !== 'CallExpression')) return undefined
    const [called, ...others] = sources.map(call => this.#calledBy(module, call, node))
    const made = called?.nodes[0]
    const isOne = called?.isKnown && called.nodes.length === 1 &&
      others.every(({ nodes, isKnown }) => isKnown && nodes.length === 1 && nodes[0] === made)
    // One that stores as well may return the same object each time.
    if (!isOne || this.#storesIn(called.where, made).length > 0) return undefined
    const { where, wanted } = called
    const returned = returnedIn(made, this.#visits)
    if (!sourcesOf(returned, made, this.#visits).some(creates)) {
      return depth > 1 && !this.#mayAllocate(where, made)
        ? this.#makerOf(returned, where, made, depth - 1)
        : undefined
    }
    const { line, column } = made.loc.start
    return {
      name: wanted,
      file: where.file,
      line,
      column: column + 1,
      keeps: true,
      keepsForLong: true,
      isSure: true
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
    return this.#groupsOf(module, caller, depth).flat()
  }

  /**
   * The same by called function: it comes before its own callees.
   * @param {Module} module
   * @param {Node} caller
   * @param {number} depth
   * @returns {Callee[][]}
   */
  #groupsOf (module, caller, depth) {
    if (depth === 0) return []
    /** @type {Callee[][]} */
    const groups = []
    for (const call of nodesIn(caller, this.#visits).filter(
      ({ type }) => type === 'CallExpression'
    )) {
      const { where, wanted, nodes, isSure } = this.#calledBy(module, call, caller)
      for (const node of nodes) {
        const found = this.#once(node, `callee ${depth}`, () =>
          this.#calleeAt(where, wanted, node, depth)
        )
        this.#visits.spend(1 + found.length)
        groups.push(found.map(callee => ({ ...callee, isSure: isSure && callee.isSure })))
      }
    }
    return groups
  }

  /**
   * @param {Module} module
   * @param {Node} call in this module
   * @param {Node} caller function that contains the call
   * @returns {Called}
   */
  #calledBy (module, { callee }, caller) {
    const name = nameOf(callee)
    if (name === undefined) {
      return { where: module, wanted: '', nodes: [], isKnown: false, isSure: false }
    }
    const isMember = callee.type === 'MemberExpression'
    const root = isMember ? rootOf(callee, this.#visits) : name
    const imported = module.imports.get(root)
    const wanted = imported && !isMember ? imported.name : name
    const where = imported
      ? this.#moduleOf(imported.from)
      : isMember ? this.#moduleWithMethod(module, name) : module
    const named = where?.byName.get(wanted) ?? []
    this.#visits.spend(named.length)
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
    const around = classAround(where, node, this.#visits)
    if (!around) return false
    if (object.type === 'ThisExpression') {
      return around === classAround(module, caller, this.#visits)
    }
    const isField = object.object?.type === 'ThisExpression' && !object.computed
    const name = isField ? `this.${object.property.name}` : object.name
    const own = this.#once(caller, 'own', () => declaredIn(nodesIn(caller, this.#visits)))
    const of = own.has(name) ? '' : module.instances.get(name) ?? ''
    return of !== '' && around.name === (module.imports.get(of)?.name ?? of)
  }

  /**
   * @param {Module} module
   * @param {string} name
   * @returns {Module | undefined} this module, or one that it requires, that has a function of this
   *   name
   */
  #moduleWithMethod (module, name) {
    if (module.byName.has(name) || isBuiltIn(name)) return module
    for (const from of new Set([...module.imports.values()].map(({ from }) => from))) {
      this.#visits.spend()
      const other = this.#moduleOf(from)
      if (other?.byName.has(name)) return other
    }
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
    const stores = this.#storesIn(module, node)
    const isKeeping = stores.length > 0
    const { line, column } = node.loc.start
    const own = isKeeping || allocates(node, this.#visits)
      ? [{
          name,
          file: module.file,
          line,
          column: column + 1,
          keeps: isKeeping,
          keepsForLong: stores.some(isLasting),
          isSure: true
        }]
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
      imports: importsIn(tree, path.dirname(found), this.#visits),
      instances: instancesIn(tree, this.#visits),
      classes: classesIn(tree, this.#visits)
    }
  }
}

const NOTHING = Object.freeze({ maker: undefined, mayAllocate: false })

/** @param {string} name */
const isBuiltIn = name => BUILT_IN.some(object => name in object)

/**
 * True if a function calls all others that retain for long.
 * @param {Callee} callee
 * @param {Callee[][]} groups callees by called function
 */
const isAbove = (callee, groups) => callee.keepsForLong && groups.every(group =>
  isSamePlace(group[0], callee) || group.every(({ keepsForLong }) => !keepsForLong))

/**
 * @param {Callee | undefined} one
 * @param {Callee} other
 */
const isSamePlace = (one, { file, line, column }) =>
  one?.line === line && one.column === column && one.file === file

/**
 * @param {Callee[]} found
 * @returns {Callee[]} each callee once
 */
function uniqueOf (found) {
  /** @type {Map<string, Callee>} */
  const byPlace = new Map()
  for (const callee of found) {
    const key = `${callee.line}:${callee.column}:${callee.file}`
    if (!byPlace.has(key)) byPlace.set(key, callee)
  }
  return [...byPlace.values()]
}

module.exports = { InlinedCallees }

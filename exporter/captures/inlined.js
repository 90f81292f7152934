'use strict'

const { CalledFunctions } = require('./called-functions')
const { allocates, creates, isLasting, mayAllocate, storesIn } = require('./retaining-code')
const { SpentError, innermost, nodesIn } = require('./source-tree')
const { isLookup, returnedIn, sourcesOf, valuesOf } = require('./value-flow')

/**
 * V8's heap profiler attributes allocations of an inlined function to its caller. This file finds
 * candidates in the source, among the functions called from the caller.
 */

/** Depth of inlining: V8 also inlines callees of inlined functions. */
const DEPTH = 3
/** Nothing is known of a function that retains for long. */
const NOTHING = Object.freeze({ maker: undefined, mayAllocate: false })

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

/** Finds functions that V8 may have inlined, in the readable sources of an app. */
class InlinedCallees {
  #called
  #visits

  /**
   * @param {(file: string) => string | undefined} sourceOf
   * @param {{ headroomBytes?: number }} [options] headroomBytes: free bytes of the heap
   */
  constructor (sourceOf, { headroomBytes } = {}) {
    this.#called = new CalledFunctions(sourceOf, headroomBytes)
    this.#visits = this.#called.visits
  }

  /**
   * Finds the callee that most likely allocates the retained objects attributed to its caller.
   * @param {{ file: string, line: number, column: number }} place place of the caller, with line
   *   and column from 1
   * @param {(callee: Callee) => boolean} [mayBe] false for a callee that is no candidate
   * @returns {Callee & { isLikelier: boolean } | undefined} undefined if the caller may itself
   *   allocate what it retains, or if no callee may be responsible; isLikelier: true if the caller
   *   hardly allocates, so that the callee must have allocated the objects
   */
  of (place, mayBe = () => true) {
    return this.#withinBudget(() => {
      const module = this.#called.moduleOf(place.file)
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
      const module = this.#called.moduleOf(place.file)
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
      this.#called.calledBy(module, call, node).isKnown, this.#visits)
  }

  /**
   * @param {Callee} keeper
   * @returns {{ maker?: Callee, mayAllocate: boolean }} maker: function that makes what it retains,
   *   if it hardly allocates itself, and if no other function may
   */
  #lookInto ({ file, line, column }) {
    const module = this.#called.moduleOf(file)
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
      store.type === 'AssignmentExpression' || !this.#called.calledBy(module, store, node).isKnown)
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
    const own = this.#called.ownNames(node)
    const sources = sourcesOf(values, node, this.#visits)
      .filter(source =>
        source.type !== 'CallExpression' || !isLookup(source, module.instances, own))
    if (sources.some(({ type }) => type !== 'CallExpression')) return undefined
    const [called, ...others] = sources.map(call => this.#called.calledBy(module, call, node))
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
      const { where, wanted, nodes, isSure } = this.#called.calledBy(module, call, caller)
      for (const node of nodes) {
        const found = this.#called.once(node, `callee ${depth}`, () =>
          this.#calleeAt(where, wanted, node, depth)
        )
        this.#visits.spend(1 + found.length)
        groups.push(found.map(callee => ({ ...callee, isSure: isSure && callee.isSure })))
      }
    }
    return groups
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
}

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

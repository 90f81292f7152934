'use strict'

const path = require('node:path')
const { heapHeadroom } = require('../data-folder/bounded-json')
const { allocates, handsOn, keeps, mayAllocate, mayKeep } = require('./retaining-code')
const {
  Budget, SpentError, functionsIn, groupedByName, importsIn, innermost, nameOf, nodesIn,
  parse, rootOf
} = require('./source-tree')

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
/** @typedef {import('./source-tree').Node} Node */
/** @typedef {import('./source-tree').Module} Module */
/**
 * @typedef {{ name: string, file: string, line: number, column: number, keeps: boolean,
 *   allocates: boolean }} Callee line and column from 1
 */

/**
 * How a callee compares with its caller: `certain` if the caller itself hardly allocates,
 * `likelier` if the callee retains objects and nothing shows that the caller's own are retained.
 * @typedef {'possible' | 'likelier' | 'certain'} Rank
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
   * @returns {Callee & { rank: Rank } | undefined} undefined if the caller itself retains objects,
   *   or if no callee may be responsible
   */
  of (place, mayBe = () => true) {
    return this.#withinBudget(() => {
      const module = this.#moduleOf(place.file)
      const node = module && innermost(module, place)
      if (!node || keeps(node, this.#visits)) return undefined
      const isKnown = (/** @type {Node} */ call) => this.#calledBy(module, call).nodes.length > 0
      const found = each(this.#calleesOf(module, node, DEPTH).filter(mayBe))
      const keeper = found.find(callee => callee.keeps)
      if (!keeper && allocates(node, this.#visits)) return undefined
      const callee = keeper ?? found[0]
      if (!callee) return undefined
      return { ...callee, rank: this.#rankOf(callee, found.length === 1, node, isKnown) }
    })
  }

  /**
   * @param {Callee} callee
   * @param {boolean} isAlone true if no other callee allocates or retains
   * @param {Node} caller
   * @param {(call: Node) => boolean} isKnown true if the source of the called function is known
   * @returns {Rank}
   */
  #rankOf (callee, isAlone, caller, isKnown) {
    if (!mayAllocate(caller, isKnown, this.#visits)) {
      return callee.keeps || isAlone ? 'certain' : 'possible'
    }
    if (!callee.keeps || mayKeep(caller, isKnown, this.#visits)) return 'possible'
    return callee.allocates || !handsOn(caller, isKnown, this.#visits) ? 'likelier' : 'possible'
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
    return each(found).filter(mayBe)
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
      const { where, wanted, nodes } = this.#calledBy(module, call)
      for (const node of nodes) {
        if (node === caller) continue
        const found = this.#once(node, `callee ${depth}`, () =>
          this.#calleeAt(where, wanted, node, depth)
        )
        this.#visits.spend(1 + found.length)
        for (const callee of found) callees.push(callee)
      }
    }
    return callees
  }

  /**
   * @param {Module} module
   * @param {Node} call in this module
   * @returns {{ where: Module, wanted: string, nodes: Node[] }} functions that may be called, with
   *   their module and name there
   */
  #calledBy (module, { callee }) {
    const name = nameOf(callee)
    if (name === undefined) return { where: module, wanted: '', nodes: [] }
    const imported = module.imports.get(callee.type === 'Identifier' ? name : rootOf(callee))
    const where = imported ? this.#moduleOf(imported.from) : module
    const wanted = imported && callee.type === 'Identifier' ? imported.name : name
    return { where: where ?? module, wanted, nodes: where?.byName.get(wanted) ?? [] }
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
    const found = { keeps: keeps(node, this.#visits), allocates: allocates(node, this.#visits) }
    const { line, column } = node.loc.start
    const own = found.keeps || found.allocates
      ? [{ name, file: module.file, line, column: column + 1, ...found }]
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
 * @param {Callee[]} found
 * @returns {Callee[]} each callee once
 */
function each (found) {
  /** @type {Map<string, Callee>} */
  const byPlace = new Map()
  for (const callee of found) {
    const key = `${callee.line}:${callee.column}:${callee.file}`
    if (!byPlace.has(key)) byPlace.set(key, callee)
  }
  return [...byPlace.values()]
}

module.exports = { InlinedCallees }

'use strict'

const { NONE } = require('./dominators')
const { packageOf } = require('../text/code-owner')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/**
 * Position of a piece of code.
 * @typedef {object} Place
 * @property {string} file name of the script: a path, a file: URL or node:…
 * @property {number | null} line from 1
 * @property {string | null} package package in node_modules
 */

/** Number of property names that describe an object literal. */
const SHAPE_NAMES = 3
const MOST_NAME = 80
/** Names of edges that every object has. */
const OWN_EDGES = new Set(['__proto__', 'constructor', 'map', 'prototype'])
/** Names of the edge from a SharedFunctionInfo to its script, in V8 of Node.js 18 to 26. */
const SCRIPT_EDGE = /^(raw_)?script/
const SCOPE = 'system / Context'
const BOUND = 'native_bind'
/** An absolute path of any operating system. */
const PATH = /^(\/|[a-z]:[\\/]|\\\\)/i
const STRINGS = new Set(['string', 'concatenated string', 'sliced string'])

/** Names of nodes as a developer knows them, and the places of their code. */
class Names {
  #graph
  #reverse
  /** @type {Map<number, string> | undefined} */
  #scripts

  /**
   * @param {HeapGraph} graph
   * @param {import('./dominators').Dominators['reverse']} reverse
   */
  constructor (graph, reverse) {
    this.#graph = graph
    this.#reverse = reverse
  }

  /**
   * @param {number} node
   * @returns {string} class, or V8's name, as in: Session, Object {id, name}, string, function `on`
   */
  classOf (node) {
    const graph = this.#graph
    const type = graph.typeOf(node)
    const name = cut(graph.nameOf(node))
    if (STRINGS.has(type)) return 'string'
    if (type === 'closure') return this.#functionOf(node, name)
    if (type === 'array') return 'array'
    if (type === 'code') return 'code'
    if (type === 'number' || type === 'bigint' || type === 'symbol' || type === 'regexp') return type
    if (name === SCOPE) return 'closure scope'
    if (name === 'Object') return this.#shapeOf(node)
    return name.replace(/^system \/ /, '') || type
  }

  /**
   * @param {number} node
   * @returns {string} class; `Object` for all object literals
   */
  kindOf (node) {
    return this.#graph.nameOf(node) === 'Object' ? 'Object' : this.classOf(node)
  }

  /**
   * The place of the code that created a node: a function's own place, the place of an object's
   * constructor, or, for a scope, the place of a function that uses it.
   * @param {number} node
   * @returns {Place | null}
   */
  placeOf (node) {
    const graph = this.#graph
    const location = graph.locationOf(node)
    if (!location) return null
    const file = this.#fileOf(location.scriptId) ?? this.#scriptOf(node)
    return file === null ? null : { file, line: location.line, package: packageOf(file) }
  }

  /**
   * @param {number} scriptId
   * @returns {string | null}
   */
  #fileOf (scriptId) {
    this.#scripts ??= this.#readScripts()
    return this.#scripts.get(scriptId) ?? null
  }

  /**
   * @returns {Map<number, string>} names of scripts by id, found through the functions of each
   *   script
   */
  #readScripts () {
    const graph = this.#graph
    const scripts = new Map()
    const closure = graph.layout.nodeTypes.indexOf('closure')
    for (let n = 0; n < graph.nodeCount; n++) {
      if (graph.nodeType[n] !== closure) continue
      const location = graph.locationOf(n)
      if (!location || scripts.has(location.scriptId)) continue
      const file = this.#scriptOf(n)
      if (file !== null) scripts.set(location.scriptId, file)
    }
    return scripts
  }

  /**
   * @param {number} closure
   * @returns {string | null}
   */
  #scriptOf (closure) {
    const shared = this.follow(closure, name => name === 'shared')
    if (shared < 0) return null
    const script = this.follow(shared, name => SCRIPT_EDGE.test(name))
    const name = script < 0 ? '' : this.#graph.nameOf(script)
    return name === '' || name.startsWith('system /') ? null : name
  }

  /**
   * @param {number} node
   * @param {(name: string) => boolean} isWanted
   * @returns {number} target of the first edge with such a name; -1 without one
   */
  follow (node, isWanted) {
    const graph = this.#graph
    for (let e = graph.firstEdge[node], end = graph.firstEdge[node + 1]; e < end; e++) {
      const name = graph.edgeNameOf(e)
      if (typeof name === 'string' && isWanted(name)) return graph.edgeTo[e]
    }
    return -1
  }

  /**
   * The place of a function that uses a scope.
   * @param {number} scope
   * @param {readonly Step[]} steps steps of a path through the scope
   * @param {number} at index of the step that leaves the scope
   * @returns {{ place: Place | null, closure: number }} closure: -1 if none is known
   */
  userOf (scope, steps, at) {
    const graph = this.#graph
    for (let k = at - 1; k >= 0; k--) {
      const { node } = steps[k]
      if (graph.typeOf(node) === 'closure') return { place: this.placeOf(node), closure: node }
      if (graph.nameOf(node) !== SCOPE) break
    }
    const { first, sources } = this.#reverse
    for (let k = first[scope], end = first[scope + 1]; k < end; k++) {
      if (graph.typeOf(sources[k]) !== 'closure') continue
      const place = this.placeOf(sources[k])
      if (place) return { place, closure: sources[k] }
    }
    return { place: null, closure: -1 }
  }

  /**
   * @param {number} module an object of CommonJS' class Module
   * @returns {Place | null} file name: the module's key in the module cache
   */
  fileOfModule (module) {
    const graph = this.#graph
    const { first, sources } = this.#reverse
    for (let k = first[module], end = first[module + 1]; k < end; k++) {
      const from = sources[k]
      for (let e = graph.firstEdge[from], last = graph.firstEdge[from + 1]; e < last; e++) {
        if (graph.edgeTo[e] !== module || graph.edgeTypeOf(e) !== 'property') continue
        const file = String(graph.edgeNameOf(e))
        if (PATH.test(file)) return { file, line: null, package: packageOf(file) }
      }
    }
    return null
  }

  /**
   * True if one node holds the other as the store of an AsyncLocalStorage. Since Node.js 24 stores
   * are in a Map; before, they were in a property of each async resource.
   * @param {number} from
   * @param {number} to
   */
  isStore (from, to) {
    const graph = this.#graph
    if (graph.nameOf(from) === 'AsyncContextFrame') return true
    // Each AsyncLocalStorage has a symbol of its own, and in a snapshot all symbols have the same
    // name.
    for (let e = graph.firstEdge[from], end = graph.firstEdge[from + 1]; e < end; e++) {
      if (graph.edgeTo[e] === to && graph.edgeNameOf(e) === '<symbol kResourceStore>') return true
    }
    return false
  }

  /**
   * True for a module of CommonJS, false for a class of the app that is called Module.
   * @param {number} node
   */
  isModule (node) {
    return (
      this.#graph.nameOf(node) === 'Module' &&
      this.#graph.typeOf(node) === 'object' &&
      this.follow(node, name => name === 'children') >= 0
    )
  }

  /**
   * @param {number} node a function
   * @param {string} name V8's name of the function; `native_bind` for all bound functions
   */
  #functionOf (node, name) {
    if (name !== BOUND) return name === '' ? 'function' : `function ${name}`
    const bound = this.follow(node, edge => edge === 'bound_function')
    const of = bound < 0 ? '' : cut(this.#graph.nameOf(bound))
    return of === '' ? 'function bound' : `function bound ${of}`
  }

  /**
   * @param {number} node an object literal
   * @returns {string} Object {id, name, …}
   */
  #shapeOf (node) {
    const graph = this.#graph
    const names = []
    for (let e = graph.firstEdge[node], end = graph.firstEdge[node + 1]; e < end; e++) {
      if (graph.edgeTypeOf(e) !== 'property') continue
      const name = String(graph.edgeNameOf(e))
      if (OWN_EDGES.has(name)) continue
      if (names.length === SHAPE_NAMES) return `Object {${names.join(', ')}, …}`
      names.push(name.length > 24 ? `${name.slice(0, 23)}…` : name)
    }
    return names.length === 0 ? 'Object' : `Object {${names.join(', ')}}`
  }
}

/** @param {string} name */
const cut = name => (name.length > MOST_NAME ? `${name.slice(0, MOST_NAME - 1)}…` : name)

/** True for a file of Node.js itself. @param {string} file */
const isOfNode = file => file.startsWith('node:')

/**
 * A step of a path from the root to a held object.
 * @typedef {object} Step
 * @property {number} node node to which the step leads
 * @property {string} edge type of the edge, in the terms of `meta`
 * @property {string | number} name of the edge
 */

/**
 * @param {HeapGraph} graph
 * @param {import('./paths').Paths} paths
 * @param {number} node
 * @returns {Step[]} steps from the root to the node, without the root itself
 */
function stepsTo (graph, { edgeTo, parent }, node) {
  const steps = []
  for (let at = node; at !== 0 && edgeTo[at] !== NONE; at = parent[at]) {
    const e = edgeTo[at]
    steps.push({ node: at, edge: graph.edgeTypeOf(e), name: graph.edgeNameOf(e) })
  }
  return steps.reverse()
}

module.exports = { Names, isOfNode, stepsTo }

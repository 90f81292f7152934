'use strict'

const { SnapshotError } = require('./snapshot-error')

/**
 * Layout of a snapshot, read from its own `meta`, because the order of fields and the list of types
 * differ between versions of V8 (HeapSnapshotJSONSerializer in
 * src/profiler/heap-snapshot-generator.cc).
 * @typedef {object} Layout
 * @property {number} nodeCount
 * @property {number} edgeCount
 * @property {number} traceFunctionCount 0 without recorded allocations
 * @property {number} nodeFields count of numbers for each node
 * @property {number} edgeFields
 * @property {number} locationFields
 * @property {number} traceFunctionFields
 * @property {Record<'type' | 'name' | 'id' | 'self_size' | 'edge_count', number>} node positions of
 *   node fields
 * @property {number} traceNodeField position of trace_node_id; -1 without it
 * @property {Record<'type' | 'name_or_index' | 'to_node', number>} edge
 * @property {Record<'object_index' | 'script_id' | 'line' | 'column', number> | null} location
 * @property {readonly string[]} nodeTypes
 * @property {readonly string[]} edgeTypes
 */

/** Nodes are numbered in 32 bits. */
const MOST_COUNT = 2 ** 32 - 2
/** Types are stored in a byte, and the last value marks an edge that retains nothing. */
const MOST_TYPES = 254

/**
 * Memory that an analysis takes for each node, in bytes. Six columns of the graph take 22, the
 * dominators and their working arrays 36, and paths 16. Other paths, around native code, take 12,
 * the retained size 8, and names 16 on average.
 */
const BYTES_PER_NODE = 110
/**
 * Memory that an analysis takes for each edge, in bytes: three columns (9) and the reverse edge
 * (4).
 */
const BYTES_PER_EDGE = 13
/** Memory of Node.js itself, its code, and the chunks that are being read. */
const BASE_BYTES = 96 * 2 ** 20

/**
 * @param {string} text JSON of the member `snapshot`
 * @param {number} position position of its end in the file, for errors
 * @returns {Layout}
 * @throws {SnapshotError}
 */
function readLayout (text, position) {
  const fail = (/** @type {string} */ why) =>
    new SnapshotError('malformed', `not a heap snapshot of V8: ${why}`, { position })
  let header
  try {
    header = JSON.parse(text)
  } catch {
    throw fail('its header is not JSON')
  }
  const { meta } = header ?? {}
  const node = positions(meta?.node_fields, ['type', 'name', 'id', 'self_size', 'edge_count'])
  const edge = positions(meta?.edge_fields, ['type', 'name_or_index', 'to_node'])
  if (!node || !edge) throw fail('its header lacks fields of nodes or edges')
  const nodeTypes = meta.node_types?.[node.type]
  const edgeTypes = meta.edge_types?.[edge.type]
  if (!isListOfNames(nodeTypes) || !isListOfNames(edgeTypes)) throw fail('its types have no names')
  const { node_count: nodeCount, edge_count: edgeCount } = header
  if (!isCount(nodeCount) || nodeCount === 0) throw fail(`node_count is ${shown(nodeCount)}`)
  if (!isCount(edgeCount)) throw fail(`edge_count is ${shown(edgeCount)}`)
  const traceFunctionCount = header.trace_function_count ?? 0
  if (!isCount(traceFunctionCount)) {
    throw fail(`trace_function_count is ${shown(traceFunctionCount)}`)
  }
  const location = positions(meta.location_fields, ['object_index', 'script_id', 'line', 'column'])
  return {
    nodeCount,
    edgeCount,
    traceFunctionCount,
    nodeFields: meta.node_fields.length,
    edgeFields: meta.edge_fields.length,
    locationFields: location ? meta.location_fields.length : 0,
    traceFunctionFields: meta.trace_function_info_fields?.length ?? 0,
    node,
    traceNodeField: meta.node_fields.indexOf('trace_node_id'),
    edge,
    location,
    nodeTypes,
    edgeTypes
  }
}

/**
 * @template {string} Name
 * @param {unknown} fields
 * @param {readonly Name[]} names
 * @returns {Record<Name, number> | null} null if a field is missing
 */
function positions (fields, names) {
  if (!isListOfNames(fields)) return null
  const found = names.map(name => /** @type {const} */ ([name, fields.indexOf(name)]))
  return found.some(([, at]) => at < 0)
    ? null
    : /** @type {Record<Name, number>} */ (Object.fromEntries(found))
}

/**
 * @param {unknown} list
 * @returns {list is string[]}
 */
const isListOfNames = list =>
  Array.isArray(list) &&
  list.length > 0 &&
  list.length <= MOST_TYPES &&
  list.every(name => typeof name === 'string')

/**
 * @param {unknown} count
 * @returns {count is number}
 */
const isCount = count =>
  Number.isInteger(count) && Number(count) >= 0 && Number(count) <= MOST_COUNT

const shown = (/** @type {unknown} */ value) => String(JSON.stringify(value)).slice(0, 40)

/**
 * @param {Pick<Layout, 'nodeCount' | 'edgeCount'>} layout
 * @returns {number} upper bound of the memory for reading and analysis in bytes, known before any
 *   of it is allocated
 */
const predictMemory = ({ nodeCount, edgeCount }) =>
  BASE_BYTES + nodeCount * BYTES_PER_NODE + edgeCount * BYTES_PER_EDGE

module.exports = { readLayout, predictMemory }

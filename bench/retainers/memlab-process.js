'use strict'

// Runs memlab on one snapshot: it loads the file, and computes shortest paths, dominators and
// retained sizes.
//
//   node memlab-process.js PATH-OF-HEAP-ANALYSIS SNAPSHOT IDS    IDS: a JSON file with ids of nodes

const fs = require('node:fs')

const [, , main, file, ids] = process.argv
const STEPS = 200

/**
 * @param {any} node node of memlab
 * @returns {string[]} names of edges and nodes, up to the root
 */
function traceOf (node) {
  const names = []
  for (let at = node, n = 0; at?.pathEdge && n < STEPS; n++) {
    names.push(String(at.pathEdge.name_or_index), String(at.name))
    at = at.pathEdge.fromNode
  }
  return names
}

/** Prints, as its last line, the nodes as seen by memlab. */
async function run () {
  const { getFullHeapFromFile } = require(main)
  const heap = await getFullHeapFromFile(file)
  /** @type {{ retained: number[], traced: number[] }} */
  const wanted = JSON.parse(fs.readFileSync(ids, 'utf8'))
  const retainedBytes = wanted.retained.map(id => heap.getNodeById(id)?.retainedSize ?? null)
  const traces = wanted.traced.map(id => traceOf(heap.getNodeById(id)))
  process.stdout.write(`\n${JSON.stringify({ retainedBytes, traces })}\n`)
}

run()

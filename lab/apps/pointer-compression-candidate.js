'use strict'

// A routing service has its road graph in memory: some 200 MB of small objects that refer to each
// other. The graph is stable, and the app has no problem. Pointers of four bytes would need little
// more than half of the memory.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const NODES = 900_000
/**
 * @typedef {{ id: number, left: Place | null, right: Place | null, up: Place | null, roads: (Place
 *   | null)[] }} Place
 */
/** @type {Place[]} */
const graph = []
for (let id = 0; id < NODES; id++) {
  const left = graph[id >> 1] ?? null
  const right = graph[id >> 2] ?? null
  graph.push({
    id,
    left,
    right,
    up: graph[id - 1] ?? null,
    roads: [left, right, graph[id >> 3] ?? null]
  })
}

const server = http.createServer((request, response) => {
  /** @type {Place | null} */
  let place = graph[Math.floor(Math.random() * NODES)]
  const path = []
  for (let i = 0; i < 40 && place; i++, place = place.left) path.push(place.id)
  sendJson(response, path)
})

withLoad(server, appRun(), {
  phases: [{ perSecond: 60 }],
  requests: [{ method: 'GET', path: '/routes/{key}' }]
})

'use strict'

/**
 * `npm run bench:snapshot-cost` measures the memory that V8 needs beside the heap during a heap
 * snapshot, for several kinds of heaps. agent/capture/heap-snapshot.js predicts the maximum.
 *
 *   npm run bench:snapshot-cost -- --nodes /path/to/node20:/path/to/node26 --mib 60
 */

const { execFileSync } = require('node:child_process')
const { versionOf } = require('../test/support/agent-collector')
const { parseOptions } = require('./options')

const SHAPES = Object.freeze({
  'pairs of small objects': '({ i, next: { a: i } })',
  rows: "({ id: i, name: 'row ' + i, at: Date.now(), tags: ['a' + i, 'b'], price: i / 3 })",
  maps: "new Map([[i, i], ['k' + i, { i }]])",
  closures: '(() => { const own = { i }; return () => own })()',
  'strings of 1 KB': "('x' + i).repeat(200).split('').join('')",
  'strings of 1 MB': "Buffer.alloc(1e6, 65 + i % 26).toString('latin1')",
  'arrays of 1,000 numbers': 'Array.from({ length: 1000 }, (_, k) => k + 0.5)'
})

/**
 * Fills a heap, takes a snapshot, and prints its cost.
 * @param {string} make
 * @param {number} bytes
 */
const program = (make, bytes) => `
const v8 = require('node:v8')
const fs = require('node:fs')
const kept = []
for (let i = 0; v8.getHeapStatistics().used_heap_size < ${bytes};) for (let k = 0; k < 20; k++, i++) kept.push(${make})
gc()
const heap = v8.getHeapStatistics().used_heap_size
const rss = process.memoryUsage.rss()
const began = performance.now()
const stream = v8.getHeapSnapshot()
const seconds = (performance.now() - began) / 1000
let file = 0
stream.on('data', chunk => { file += chunk.length }).on('end', () => {
  const most = Number(/VmHWM:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) * 1024
  console.log(JSON.stringify({ heap, grown: most - rss, seconds, file, kept: kept.length }))
})
`

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  mib: { type: 'string', default: '60' }
})
console.log(
  '| Node | heap of | heap, MiB | RSS grows by, MiB | for each byte of heap | stands still, s | ' +
    'file, MiB |\n|---|---|---:|---:|---:|---:|---:|'
)
for (const node of given.nodes.split(':')) {
  for (const [shape, make] of Object.entries(SHAPES)) {
    const { heap, grown, seconds, file } = JSON.parse(
      execFileSync(
        node,
        [
          '--expose-gc',
          '--max-old-space-size=4000',
          '-e',
          program(make, Number(given.mib) * 2 ** 20)
        ],
        { encoding: 'utf8' }
      )
    )
    const mib = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(0)
    console.log(
      `| ${versionOf(node)} | ${shape} | ${mib(heap)} | ${mib(grown)} | ` +
        `${(grown / heap).toFixed(1)} | ${seconds.toFixed(1)} | ${mib(file)} |`
    )
  }
}

'use strict'

/**
 * `npm run bench:gc-count` compares counts of the GCs of one process: by V8's own trace, by
 * memwatch (with V8's callbacks, and with an observer), and by prom-client's default metrics.
 * prom-client reads only the first entry of each batch. The count of the trace begins with that of
 * memwatch. In the last run of each Node, the addon of dd-trace adds GC callbacks to V8 as well; it
 * counts from the start of the process.
 *
 *   npm run bench:gc-count -- --nodes /path/to/node20:/path/to/node22 --seconds 5
 */

const path = require('node:path')
const { parseOptions } = require('./options')
const { FOLDER, installCompared } = require('./overhead-sinks')
const { runTraced } = require('./traced-app')

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  seconds: { type: 'string', default: '5' }
})
/**
 * @param {string} node
 * @param {string[]} flags
 * @param {'on' | 'off'} hooks
 */
async function count (node, flags, hooks) {
  const { hello, traced, counted, lines } = await runTraced({
    node,
    flags,
    args: [path.join(__dirname, 'gc-count-app.js'), given.seconds],
    env: { MEMWATCH_GC_HOOKS: hooks }
  })
  const { promClient, otherHooks } = JSON.parse(lines.find(line => line.startsWith('{')) ?? '{}')
  return {
    node: `${hello.node} ${hello.libc}`,
    counter: hello.gcCounter,
    truth: traced,
    memwatch: counted,
    promClient,
    otherHooks
  }
}

/** @type {[flags: string[], hooks: 'on' | 'off'][]} */
const RUNS = [
  [[], 'on'],
  [[], 'off'],
  [['--max-semi-space-size=1'], 'on'],
  [['--max-semi-space-size=1'], 'off'],
  [['-r', path.join(FOLDER, 'variants/native-metrics.js')], 'on']
]

async function main () {
  installCompared()
  console.log(
    [
      'node',
      'flags',
      'by',
      'V8 trace',
      'memwatch',
      'prom-client',
      'memwatch sees',
      'prom-client sees',
      'the other addon'
    ].join('\t')
  )
  for (const node of given.nodes.split(':')) {
    for (const [flags, hooks] of RUNS) {
      const { node: version, counter, truth, memwatch, promClient, otherHooks } =
        await count(node, flags, hooks)
      const share = seen => `${(100 * seen / truth).toFixed(1)} %`
      console.log(
        [
          version,
          flags.map(flag => path.basename(flag)).join(' ') || 'default',
          counter,
          truth,
          memwatch,
          promClient,
          share(memwatch),
          share(promClient),
          otherHooks ?? '–'
        ].join('\t')
      )
    }
  }
}

main()

'use strict'

/**
 * `npm run bench:gc-count`: how many GCs are seen? One process, three counts of the same events:
 * V8's own trace, memwatch by V8's callbacks and by an observer, and prom-client's default metrics,
 * which read the first entry of each batch only. The trace is counted from when memwatch began to.
 *
 *   npm run bench:gc-count -- --nodes /path/to/node20:/path/to/node22 --seconds 5
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { Exporter } = require('../exporter/exporter')

const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    seconds: { type: 'string', default: '5' }
  }
})
/** A line of --trace-gc that is a pause: V8 10 to 14. */
const TRACE = /\] +\d+ ms: (?:Incremental )?(?:Scavenge|Mark-sweep|Mark-Compact)/

/**
 * @param {string} node
 * @param {string[]} flags
 * @param {'on' | 'off'} hooks
 */
async function count (node, flags, hooks) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-gc-count-'))
  const socket = path.join(folder, 'exporter.sock')
  const exporter = new Exporter({
    listen: { host: '127.0.0.1', port: 0 },
    socket: { path: socket },
    compat: false,
    maxTargets: 10,
    logLevel: 'silent'
  })
  await exporter.start()
  const ended = once(exporter, 'end')
  const child = spawn(
    node,
    [
      ...flags,
      '--trace-gc',
      '--require',
      require.resolve('../test/support/marks-gc-start'),
      '--require',
      require.resolve('memwatch/agent'),
      path.join(__dirname, 'gc-count-app.js'),
      given.seconds
    ],
    {
      env: {
        ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket, MEMWATCH_GC_HOOKS: hooks
      },
      stdio: ['ignore', 'pipe', 'inherit']
    }
  )
  let output = ''
  child.stdout.on('data', chunk => { output += chunk })
  await once(child, 'close')
  const [target] = await ended
  await exporter.stop()
  fs.rmSync(folder, { recursive: true })
  const lines = output.slice(output.indexOf('COUNTED')).split('\n')
  const { promClient } = JSON.parse(lines.find(line => line.startsWith('{')) ?? '{}')
  const pauses = Object.entries(target.values.gc).filter(
    ([key]) => !key.startsWith('incremental') && !key.startsWith('weakcb')
  )
  return {
    node: `${target.hello.node} ${target.hello.libc}`,
    counter: target.hello.gcCounter,
    truth: lines.filter(line => TRACE.test(line)).length,
    memwatch: pauses.reduce((sum, [, row]) => sum + row[0], 0),
    promClient
  }
}

/** @type {[flags: string[], hooks: 'on' | 'off'][]} */
const RUNS = [
  [[], 'on'],
  [[], 'off'],
  [['--max-semi-space-size=1'], 'on'],
  [['--max-semi-space-size=1'], 'off']
]

async function main () {
  console.log(
    [
      'node',
      'flags',
      'by',
      'V8 trace',
      'memwatch',
      'prom-client',
      'memwatch sees',
      'prom-client sees'
    ].join('\t')
  )
  for (const node of given.nodes.split(':')) {
    for (const [flags, hooks] of RUNS) {
      const { node: version, counter, truth, memwatch, promClient } =
        await count(node, flags, hooks)
      const share = seen => `${(100 * seen / truth).toFixed(1)} %`
      console.log(
        [
          version,
          flags.join(' ') || 'default',
          counter,
          truth,
          memwatch,
          promClient,
          share(memwatch),
          share(promClient)
        ].join('\t')
      )
    }
  }
}

main()

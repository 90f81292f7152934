'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { Exporter } = require('../exporter/exporter')

/** A pause in the trace of V8 10 to 14, even if a chunk of output ends within the line. */
const TRACED = / ms: (?:Incremental )?(?:Scavenge|Mark-sweep|Mark-Compact)/

/**
 * Runs an app with the agent under V8's trace of GCs. Counts the GCs of the trace and those of the
 * agent, both from the agent's first count on.
 * @param {object} options
 * @param {string} options.node
 * @param {string[]} [options.flags]
 * @param {string[]} options.args the app and its arguments; the app has an IPC channel
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {(traced: number, child: import('node:child_process').ChildProcess, rssBytes: number) =>
 *   void} [options.onTraced] is called after each GC of the trace
 * @returns {Promise<{ hello: import('@memwatch/agent/protocol/frame').Hello, traced: number,
 *   counted: number, lines: string[] }>} lines: other output of the app
 */
async function runTraced ({ node, flags = [], args, env = {}, onTraced = () => {} }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-traced-'))
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
  const marks = require.resolve('../test/support/marks-gc-start')
  const agent = require.resolve('memwatch/agent')
  const child = spawn(node, [...flags, '--trace-gc', '-r', marks, '-r', agent, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket, ...env }
  })
  let traced = 0
  let rest = ''
  let counts = false
  /** @type {string[]} */
  const lines = []
  child.stdout?.setEncoding('latin1').on('data', text => {
    const whole = (rest + text).split('\n')
    rest = /** @type {string} */ (whole.pop())
    for (const line of whole) {
      if (line === 'COUNTED') counts = true
      else if (!counts) continue
      else if (TRACED.test(line)) {
        onTraced(++traced, child, exporter.targets[0]?.values.rssBytes ?? NaN)
      } else lines.push(line)
    }
  })
  await once(child, 'close')
  const [target] = await ended
  await exporter.stop()
  fs.rmSync(folder, { recursive: true })
  let counted = 0
  for (const [key, [count]] of Object.entries(target.values.gc)) {
    if (!key.startsWith('incremental') && !key.startsWith('weakcb')) counted += count
  }
  return { hello: target.hello, traced, counted, lines }
}

module.exports = { runTraced }

'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { MEMWATCH } = require('./memwatch')

/** Exporters that are running. @type {Set<{ stop: (signal?: NodeJS.Signals) => Promise<void> }>} */
const running = new Set()

/** Call this in afterEach, so that a failed test leaves no process behind. */
const stopExporters = () => Promise.all([...running].map(exporter => exporter.stop('SIGKILL')))

/**
 * `memwatch exporter` in its own process, on a private socket and a free port.
 * @param {object} [options]
 * @param {boolean} [options.ownProcessNamespace] it sees no process but itself, like a sidecar;
 *   needs root
 * @param {string[]} [options.args] more flags
 * @param {string} [options.folder] folder of the socket; default: a new one, removed when the
 *   exporter stops
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {string} [options.node] binary
 * @param {string[]} [options.nodeArgs]
 * @param {(command: string, args: string[]) => { command: string, args: string[] }} [options.wrap]
 *   wrapper of its command, such as a memory cgroup
 */
async function spawnExporter ({
  ownProcessNamespace = false,
  args = [],
  folder,
  env = {},
  node = process.execPath,
  nodeArgs = [],
  wrap = (command, args) => ({ command, args })
} = {}) {
  const at = folder ?? fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-exporter-'))
  const socket = { path: path.join(at, 'exporter.sock') }
  const command = [
    node,
    ...nodeArgs,
    MEMWATCH,
    'exporter',
    '--socket',
    socket.path,
    '--listen',
    '127.0.0.1:0',
    '--log-level',
    'silent',
    ...args
  ]
  // The first process of the namespace is a child of unshare and ends with it. Then the kernel ends
  // all other processes of the namespace.
  const [file, ...rest] = ownProcessNamespace
    ? ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', ...command]
    : command
  const wrapped = wrap(file, rest)
  const child = spawn(wrapped.command, wrapped.args, {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = once(child, 'close')
  let output = ''
  const url = await new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', text => {
      output += text
      const match = /metrics at (http:\/\/[^/]+)\/metrics/.exec(output)
      if (match) resolve(match[1])
    })
    ended.then(() => reject(new Error(`the exporter ended: ${output}`)))
  })
  const exporter = {
    url,
    socket,
    child,
    pid: /** @type {number} */ (child.pid),
    output: () => output,
    ended,
    /** @param {NodeJS.Signals} [signal] */
    async stop (signal = ownProcessNamespace ? 'SIGKILL' : 'SIGTERM') {
      child.kill(signal)
      await ended
      process.removeListener('exit', kill)
      running.delete(exporter)
      if (!folder) fs.rmSync(at, { recursive: true, force: true })
    }
  }
  running.add(exporter)
  return exporter
}

module.exports = { spawnExporter, stopExporters }

'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')

const AGENT = path.join(__dirname, '../../agent/index.js')

/** The Node.js versions that test the agent. */
const NODES = (process.env.TEST_NODES || process.execPath).split(':')

/**
 * @param {string} node path of a binary, as in /opt/node24/bin/node
 * @returns {string} its version
 */
const versionOf = node =>
  execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8', env: {} }).trim()

/**
 * Decoded messages of one connection.
 * @typedef {object} Connection
 * @property {any} [hello]
 * @property {any[]} frames
 * @property {any} [bye]
 * @property {string[]} broken lines that are not JSON, without an incomplete line at the end
 * @property {boolean} closed
 *
 * @typedef {undefined | null | false | 0 | ''} Falsy
 *
 * @typedef {object} Collector
 * @property {string} address value of MEMWATCH_SOCKET
 * @property {Connection[]} connections in order of their first bytes, over all restarts of the
 *   listener; in order of arrival if it is hung. `memwatch doctor`, which tests run at the same
 *   time for all processes of the machine, connects to each socket and sends nothing.
 * @property
 *   {<T>(look: (connections: Connection[]) => T, timeoutMs?: number) => Promise<Exclude<T, Falsy>>}
 *   until resolves to the first truthy result of the check, which runs after each arrival
 * @property {() => Promise<void>} kill closes the listener and all connections, like a crash
 * @property {() => Promise<void>} restart listens again at the same address
 * @property {() => void} wake makes a hung collector read from now on
 * @property {() => Promise<void>} stop
 */

/**
 * An exporter that only records messages.
 * @param {object} [options]
 * @param {'unix' | 'tcp'} [options.over]
 * @param {'normal' | 'hung'} [options.mode] hung: accepts connections and never reads
 * @returns {Promise<Collector>}
 */
async function startCollector ({ over = 'unix', mode = 'normal' } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-agent-'))
  const socketPath = path.join(folder, 'exporter.sock')
  /** @type {Connection[]} */
  const connections = []
  /** @type {Set<net.Socket>} */
  const sockets = new Set()
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const tellAll = () => { for (const look of [...waiting]) look() }
  /** @type {(() => void)[]} */
  const readers = []
  const read = () => { while (readers.length > 0) readers.pop()?.() }
  let hung = mode === 'hung'
  let port = 0
  /** @type {net.Server} */
  let server

  /** @param {net.Socket} socket */
  const accept = socket => {
    /** @type {Connection} */
    const connection = { frames: [], broken: [], closed: false }
    const list = () => { if (!connections.includes(connection)) connections.push(connection) }
    if (hung) list()
    sockets.add(socket)
    let rest = ''
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      connection.closed = true
      tellAll()
    })
    readers.push(() => socket.resume().setEncoding('utf8').on('data', chunk => {
      list()
      const lines = (rest + chunk).split('\n')
      rest = /** @type {string} */ (lines.pop())
      for (const line of lines) if (line !== '') take(connection, line)
      tellAll()
    }))
    if (!hung) read()
    tellAll()
  }
  const listen = async () => {
    if (over === 'unix') fs.rmSync(socketPath, { force: true })
    server = net.createServer({ pauseOnConnect: hung }, accept)
    server.listen(over === 'unix' ? { path: socketPath } : { host: '127.0.0.1', port })
    await once(server, 'listening')
    if (over === 'tcp') port = /** @type {net.AddressInfo} */ (server.address()).port
  }
  const kill = async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen()
  return {
    address: over === 'unix' ? socketPath : `tcp://127.0.0.1:${port}`,
    connections,
    until: (look, timeoutMs = 15_000) => new Promise((resolve, reject) => {
      const finish = () => { clearTimeout(timer); waiting.delete(ask) }
      const ask = () => {
        const answer = look(connections)
        if (answer) { finish(); resolve(/** @type {any} */ (answer)) } // TypeScript cannot tell
      }
      const timer = setTimeout(() => {
        finish()
        reject(
          new Error(
            `not seen in ${timeoutMs} ms: ${look}; received: ` + connections.map(sayState).join()
          )
        )
      }, timeoutMs)
      waiting.add(ask)
      ask()
    }),
    kill,
    restart: listen,
    wake: () => {
      hung = false
      read()
    },
    stop: async () => {
      if (server.listening) await kill()
      fs.rmSync(folder, { recursive: true, force: true })
    }
  }
}

/**
 * State of a connection, as the message of a failed test shows it: its end, with the newest frame.
 * @param {Connection} connection
 */
const sayState = ({ frames, ...rest }) =>
  `${frames.length} frames, ` + JSON.stringify({ ...rest, newest: frames.at(-1) }).slice(0, 4000)

/**
 * @param {Connection} connection
 * @param {string} line
 */
function take (connection, line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    connection.broken.push(line)
    return
  }
  if (message.type === 'hello') connection.hello = message
  else if (message.type === 'frame') connection.frames.push(message)
  else if (message.type === 'bye') connection.bye = message
}

/**
 * This environment without variables that control Node.js or the agent.
 * @param {NodeJS.ProcessEnv} [changes]
 */
function environment (changes = {}) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(NODE_|MEMWATCH_|npm_|JEST_)/.test(name))
  )
  return { ...env, ...changes }
}

/**
 * @typedef {object} Ended
 * @property {number | null} code
 * @property {NodeJS.Signals | null} signal
 * @property {string} stdout
 * @property {string} stderr
 * @property {number} seconds from spawn to exit
 */

/**
 * Runs one child to its end, and kills it by its id if it does not end.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv, cwd?: string, uid?: number, gid?: number, stdin?: string,
 *   timeoutMs?: number }} [options] env: in full
 * @returns {{ child: import('node:child_process').ChildProcess, ended: Promise<Ended>, said: (text:
 *   string) => Promise<string>, printed: () => string }}
 *   said: resolves to its stdout once it contains that text; printed: its stderr so far
 */
function spawnBounded (
  command,
  args,
  { env = environment(), cwd, uid, gid, stdin, timeoutMs = 20_000 } = {}
) {
  const began = process.hrtime.bigint()
  const child = spawn(command, args, {
    env,
    cwd,
    uid,
    gid,
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe']
  })
  const output = /** @type {import('node:stream').Readable} */ (child.stdout)
  const errors = /** @type {import('node:stream').Readable} */ (child.stderr)
  child.stdin?.end(stdin)
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  let stdout = ''
  let stderr = ''
  let seconds = NaN
  output.setEncoding('utf8').on('data', chunk => {
    stdout += chunk
  })
  errors.setEncoding('utf8').on('data', chunk => {
    stderr += chunk
  })
  child.on('exit', () => {
    seconds = Number(process.hrtime.bigint() - began) / 1e9
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    clearTimeout(timer)
    return { code, signal, stdout, stderr, seconds }
  })
  const said = (/** @type {string} */ text) =>
    /** @type {Promise<string>} */ (
      new Promise((resolve, reject) => {
        const look = () => {
          if (stdout.includes(text)) resolve(stdout)
        }
        output.on('data', look)
        child.on('close', () =>
          reject(new Error(`ended without saying ${text}: ${stdout} ${stderr}`))
        )
        look()
      })
    )
  return { child, ended, said, printed: () => stderr }
}

/**
 * A child with the agent preloaded.
 * @param {object} options
 * @param {string} [options.node]
 * @param {string[]} [options.before] Node.js flags before the agent's preload
 * @param {string[]} options.args after it: flags, then -e CODE or a script
 * @param {NodeJS.ProcessEnv} [options.env] changes
 * @param {string} [options.socket] MEMWATCH_SOCKET
 * @param {string} [options.cwd]
 * @param {number} [options.timeoutMs]
 */
function spawnWatched ({ node = NODES[0], before = [], args, env = {}, socket, cwd, timeoutMs }) {
  return spawnBounded(node, [...before, '-r', AGENT, ...args], {
    env: environment({ ...(socket && { MEMWATCH_SOCKET: socket }), ...env }), cwd, timeoutMs
  })
}

module.exports = {
  AGENT,
  NODES,
  versionOf,
  environment,
  startCollector,
  spawnBounded,
  spawnWatched
}

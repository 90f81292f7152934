'use strict'

/**
 * `npm run bench:growth` measures the cost of the agent as the app grows: by heap, by GCs a second,
 * by worker threads. Each line is measured in a separate app with the agent. The agent itself
 * reports the main-thread time of a frame (collectSeconds). The bench also measures single calls of
 * a frame. It needs Linux.
 *
 *   npm run bench:growth -- --nodes /path/to/node20:/path/to/node24 --write
 */

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { median, max, quantile } = require('simple-statistics')
const { parseOptions } = require('./options')

const AGENT = path.join(__dirname, '../agent/index.js')
const TURNS = path.join(__dirname, 'growth-turns.js')
const COLD_CALLS = path.join(__dirname, 'cold-calls.js')
const WARM_FRAMES = 4

/**
 * @typedef {{ heldMs: number, waitedMs: number }} Turn one turn of the event loop with work of the
 *   agent
 */

/** @type {Record<string, { title: string, of: number[], args: (value: number) => string[] }>} */
const SHAPES = {
  heap: {
    title: 'heap, MiB',
    of: [50, 500, 2000, 4000],
    args: mb => [
      '--max-old-space-size=8000',
      '-e',
      `const rows = Array.from({ length: ${mb} * 11000 }, (_, i) => ({ i, text: 'row ' + i })); ` +
        'timers.setInterval(() => rows.length, 1000)'
    ]
  },
  gcs: {
    title: 'GCs a second, about',
    of: [0, 100, 1000, 5000],
    args: rate => [
      '--expose-gc',
      '--max-semi-space-size=1',
      '-e',
      rate === 0
        ? 'timers.setInterval(() => {}, 1000)'
        : `timers.setInterval(() => { for (let i = 0; i < ${rate / 100}; i++) gc({ type: ` +
          '\'minor\' }) }, 10)'
    ]
  },
  workers: {
    title: 'worker threads',
    of: [1, 8, 32],
    args: count => [
      '-e',
      `const { Worker } = require('worker_threads'); for (let i = 0; i < ${count}; i++) new ` +
        'Worker(\'setInterval(() => {}, 1000)\', { eval: true })'
    ]
  }
}

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  frames: { type: 'string', default: '24' },
  shapes: { type: 'string', default: Object.keys(SHAPES).join(',') },
  write: { type: 'boolean', default: false }
})

const shapes = given.shapes.split(',')
for (const name of shapes) {
  if (!SHAPES[name]) {
    throw new Error(`--shapes: expected some of ${Object.keys(SHAPES).join(', ')}, got ${name}`)
  }
}

/**
 * @param {string} node
 * @param {string[]} args
 * @returns {Promise<{ micros: number[], gcsPerSecond: number, threads: number, lineBytes: number,
 *   turns: Turn[] }>} measurements of the main thread
 */
async function run (node, args) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-growth-'))
  const socketPath = path.join(folder, 's')
  /** @type {any[]} */
  const frames = []
  let lineBytes = 0
  const threads = new Set()
  const server = net.createServer(socket => {
    let rest = ''
    let main = false
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', text => {
      const lines = (rest + text).split('\n')
      rest = /** @type {string} */ (lines.pop())
      for (const line of lines) {
        const message = JSON.parse(line)
        if (message.type === 'hello') {
          main = message.threadId === 0
          threads.add(message.threadId)
        }
        if (message.type === 'frame' && main) {
          frames.push(message)
          lineBytes = Math.max(lineBytes, line.length)
          server.emit('frame')
        }
      }
    })
  })
  server.listen(socketPath)
  await once(server, 'listening')
  const child = spawn(node, ['-r', TURNS, '-r', AGENT, ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socketPath }
  })
  const turnsSince = async () => {
    const said = once(child, 'message')
    child.send('turns')
    return (await said)[0]
  }
  while (frames.length < WARM_FRAMES) await once(server, 'frame')
  await turnsSince()
  while (frames.length < Number(given.frames) + WARM_FRAMES) await once(server, 'frame')
  /** @type {Turn[]} */
  const turns = await turnsSince()
  child.kill('SIGKILL')
  await once(child, 'close')
  server.close()
  fs.rmSync(folder, { recursive: true, force: true })
  const settled = frames.slice(WARM_FRAMES)
  const count = (/** @type {any} */ frame) => Object.values(frame.values.gc).reduce((sum, [n]) => sum + n, 0)
  const [first, last] = [settled[0], settled[settled.length - 1]]
  return {
    micros: settled
      .slice(1)
      .map((frame, i) => (frame.values.collectSeconds - settled[i].values.collectSeconds) * 1e6),
    gcsPerSecond: (count(last) - count(first)) / (last.uptimeSeconds - first.uptimeSeconds),
    threads: threads.size,
    lineBytes,
    turns
  }
}

/**
 * @param {Turn[]} turns
 * @param {(turn: Turn) => number} ms
 * @returns {string} µs
 */
const longest = (turns, ms) => (max(turns.map(ms)) * 1000).toFixed(0)

/**
 * Measures the cost of single parts of a frame, without an agent.
 * @param {string} node
 * @returns {Promise<string>} a table
 */
async function coldCalls (node) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-growth-'))
  const server = net
    .createServer(socket => socket.on('error', () => {}).resume())
    .listen(path.join(folder, 's'))
  await once(server, 'listening')
  const ask = async (/** @type {string[]} */ ...args) => {
    const child = spawn(node, [COLD_CALLS, ...args], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '', SOCKET: path.join(folder, 's') }
    })
    const [answer] = await once(child, 'message')
    return answer
  }
  const rows = await Promise.all((await ask()).map(async (/** @type {string} */ call) => {
    const micros = (await ask(call, given.frames)).slice(WARM_FRAMES)
    return `| ${call} | ${quantile(micros, 0.25).toFixed(0)} | ${median(micros).toFixed(0)} |`
  }))
  server.close()
  fs.rmSync(folder, { recursive: true, force: true })
  return '| one call a second, in an idle process | first quartile, µs | ' +
    `median, µs |\n|${' --- |'.repeat(3)}\n${rows.join('\n')}`
}

async function main () {
  const loads = [os.loadavg()[0]]
  const sections = []
  for (const node of given.nodes.split(':')) {
    sections.push(
      `## Node ${execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()}`
    )
    sections.push(await coldCalls(node))
    for (const name of shapes) {
      const shape = SHAPES[name]
      const rows = []
      for (const value of shape.of) {
        const { micros, gcsPerSecond, threads, lineBytes, turns } = await run(
          node,
          shape.args(value)
        )
        loads.push(os.loadavg()[0])
        rows.push(
          `| ${value} | ${quantile(micros, 0.25).toFixed(0)} | ${median(micros).toFixed(0)} | ` +
            `${max(micros).toFixed(0)} | ${longest(turns, ({ heldMs }) => heldMs)} | ` +
              `${longest(turns, ({ heldMs, waitedMs }) => heldMs - waitedMs)} | ` +
                `${gcsPerSecond.toFixed(0)} | ${threads} | ${lineBytes} |`
        )
        console.log(name, rows[rows.length - 1])
      }
      sections.push(
        `| ${shape.title} | frame, first quartile, µs | frame, median, µs | longest frame, µs | ` +
          'longest slice, µs | longest slice without waits for a CPU, µs | GCs counted a second | ' +
            `reporting threads | longest line, bytes |\n|${' --- |'.repeat(9)}\n${rows.join('\n')}`
      )
    }
  }
  sections.unshift(
    '# Cost of the agent as the app grows',
    '<!-- Written by npm run bench:growth -- --write; do not edit. -->\nThe tables show how long ' +
    'one frame occupies the main thread, for larger heaps, more GCs and more workers. The agent ' +
    'measures wall time, which includes work that interrupts a frame. The machine had two cores ' +
    'and a load average of ' +
      `${Math.min(...loads).toFixed(0)} to ${Math.max(...loads).toFixed(0)}.`,
    `Each row has ${given.frames} frames, one a second. The longest frames include a scan of the ` +
      'memory map, which runs in slices: every five seconds while memory changes, otherwise ' +
      'every minute. The first table of each Node.js has single calls like those of a frame. They are ' +
      'slow, because code that runs once a second is no longer in the CPU caches.'
  )
  const page = sections.join('\n\n') + '\n'
  console.log(page)
  if (given.write) fs.writeFileSync(path.join(__dirname, '../docs/growth.md'), page)
}

main()

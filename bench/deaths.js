'use strict'

/**
 * `npm run bench:deaths`: the share of right causes of death. Real processes die in all known ways,
 * on each given Node, inside a memory cgroup and outside. The exporter sees each process once in
 * /proc, as on a laptop or a node, and once not, as in a sidecar.
 *
 *   npm run bench:deaths -- --nodes /path/to/node20:/path/to/node24
 *   npm run bench:deaths -- --deaths oom_kill,heap_oom --times 5
 *
 * Prints a line per death. Ends with 1 if fewer than 95 % are right, or an OOM kill was reported as
 * clean.
 */

const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { startExporter, eventually } = require('../test/support/exporter')
const { spawnExporter } = require('../test/support/exporter-process')

const MIB = 2 ** 20
const RIGHT_RATIO = 0.95
const AGENT = require.resolve('memwatch/agent')
const APP = path.join(__dirname, 'dying-app.js')

/**
 * @typedef {object} Staged
 * @property {string} way of bench/dying-app.js
 * @property {string[]} reason correct reasons if the exporter sees the process
 * @property {string[]} [blind] correct reasons if it does not; default: the same
 * @property {string[]} [flags] of Node
 * @property {number} [limitMib] of a memory cgroup
 * @property {NodeJS.Signals} [signal] sent to it
 * @property {number} [afterSeconds] of the way before that signal
 */

/**
 * The signal is visible only until the parent reads the status, so the bench does not require it.
 * @type {Record<string, Staged>}
 */
const staged = {
  'exit 0': { way: 'exit-0', reason: ['clean'] },
  'exit 0 in a container': { way: 'exit-0', reason: ['clean'], limitMib: 256 },
  'SIGTERM with a handler': { way: 'sigterm-handled', reason: ['clean'] },
  'exit 3': { way: 'exit-3', reason: ['error'] },
  'uncaught exception': { way: 'throw', reason: ['error'] },
  'unhandled rejection': { way: 'rejection', reason: ['error'] },
  'abort()': { way: 'abort', reason: ['crash', 'signal'] },
  SIGSEGV: { way: 'wait', signal: 'SIGSEGV', reason: ['crash', 'signal'] },
  'SIGSEGV in a container': {
    way: 'wait',
    signal: 'SIGSEGV',
    reason: ['crash', 'signal'],
    limitMib: 256
  },
  SIGKILL: { way: 'wait', signal: 'SIGKILL', reason: ['killed', 'signal'] },
  'SIGKILL in a container': {
    way: 'wait',
    signal: 'SIGKILL',
    reason: ['killed', 'signal'],
    limitMib: 256
  },
  'SIGTERM without a handler': { way: 'wait', signal: 'SIGTERM', reason: ['killed', 'signal'] },
  'SIGKILL while blocked': { way: 'block', signal: 'SIGKILL', afterSeconds: 12, reason: ['hung'] },
  'heap full': { way: 'heap', flags: ['--max-old-space-size=64'], reason: ['heap_oom'] },
  'heap full at once': {
    way: 'heap-blocking',
    flags: ['--max-old-space-size=256'],
    reason: ['heap_oom']
  },
  'heap full in a container': {
    way: 'heap',
    flags: ['--max-old-space-size=100'],
    limitMib: 512,
    reason: ['heap_oom']
  },
  'heap larger than its container': {
    way: 'heap',
    flags: ['--max-old-space-size=1024'],
    limitMib: 200,
    reason: ['oom_kill']
  },
  'memory full': { way: 'memory', limitMib: 256, reason: ['oom_kill'] },
  'memory full at once': {
    way: 'memory-blocking',
    limitMib: 256,
    reason: ['oom_kill'],
    blind: ['oom_kill', 'signal']
  }
}

const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    deaths: { type: 'string', default: Object.keys(staged).join(',') },
    times: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' }
  }
})
const chosen = given.deaths.split(',').map(death => {
  const names = Object.keys(staged).filter(
    name => name === death || staged[name].reason.includes(death)
  )
  if (names.length === 0) {
    throw new Error(
      `--deaths: no death called ${death}; there are ${Object.keys(staged).join(', ')}`
    )
  }
  return names
}).flat()

/**
 * @param {string} node
 * @param {Staged} death
 * @param {string} name of the target
 * @param {import('../exporter/ingest/address').Address & { path: string }} socket
 */
async function die (node, { way, flags = [], limitMib, signal, afterSeconds = 0.5 }, name, socket) {
  const group =
    limitMib === undefined
      ? undefined
      : createMemoryGroup({ limitBytes: limitMib * MIB, name: 'death' })
  if (group && !group.supported) throw new Error(`no memory group: ${group.reason}`)
  const command = { command: node, args: [...flags, '-r', AGENT, APP, way] }
  const { command: file, args } = group ? group.wrap(command.command, command.args) : command
  const child = spawn(file, args, {
    env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket.path, MEMWATCH_NAME: name },
    stdio: ['ignore', 'pipe', 'ignore']
  })
  const ended = once(child, 'close')
  if (signal) {
    await once(child.stdout, 'data')
    setTimeout(() => child.kill(signal), 1000 * afterSeconds)
  }
  child.stdout.resume()
  const [code, killedBy] = await ended
  await group?.remove()
  return killedBy ?? `exit ${code}`
}

/**
 * @param {{ url: string, socket: any }} exporter
 * @param {'seen' | 'blind'} sight
 * @param {string} node
 * @param {string} name
 */
async function judge (exporter, sight, node, name) {
  const target = `${sight}-${Math.random().toString(36).slice(2)}`
  const how = await die(node, staged[name], target, exporter.socket)
  const [death] = await eventually(
    async () => (await fetch(`${exporter.url}/api/v1/deaths?target=${target}`)).json(),
    deaths => deaths.length > 0,
    15_000
  ).catch(() => [])
  const right = (sight === 'blind' ? staged[name].blind : undefined) ?? staged[name].reason
  const good = right.includes(death?.reason)
  console.log(
    [
      good ? 'right' : 'WRONG',
      sight,
      death?.node ?? '',
      name,
      how,
      death ? `${death.reason}, ${death.sure}` : 'nothing said',
      death?.text ?? ''
    ].join('\t')
  )
  return { good, falselyClean: right.includes('oom_kill') && death?.reason === 'clean' }
}

async function main () {
  const seeing = await startExporter()
  const blind = await spawnExporter({ ownProcessNamespace: true })
  const jobs = given.nodes
    .split(':')
    .flatMap(node =>
      chosen.flatMap(name =>
        Array.from({ length: Number(given.times) }, () => [
          () => judge(seeing, 'seen', node, name),
          () => judge(blind, 'blind', node, name)
        ]).flat()
      )
    )
  /** @type {Awaited<ReturnType<typeof judge>>[]} */
  const results = []
  await Promise.all(Array.from({ length: Number(given.lanes) }, async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) results.push(await job())
  }))
  await seeing.stop()
  await blind.stop()
  const right = results.filter(({ good }) => good).length
  const falselyClean = results.filter(({ falselyClean }) => falselyClean).length
  console.log(
    `${right} of ${results.length} right (${((100 * right) / results.length).toFixed(1)} %); ` +
      `${falselyClean} kills for memory called clean`
  )
  process.exitCode = right < RIGHT_RATIO * results.length || falselyClean > 0 ? 1 : 0
}

main()

'use strict'

/**
 * `npm run bench:deaths` measures the share of right causes of death. Real processes die in all
 * known ways, on each given Node, inside and outside of a memory cgroup. The exporter sees each
 * process once in /proc, as on a laptop or a node, and once not, as in a sidecar.
 *
 *   npm run bench:deaths -- --nodes /path/to/node20:/path/to/node24
 *   npm run bench:deaths -- --deaths oom_kill,heap_oom --times 5
 *   npm run bench:deaths -- --live 90 --lanes 4
 *
 * With --live each process lives for about that many seconds. Processes that run out of memory in
 * steps fill their memory in that time.
 *
 * Prints a line per death, with the line of code that a profile of the dead process names. The
 * built-in capture rules made this profile, and it must be both in the exporter and in the folder
 * of --ship-to. Ends with 1 if fewer than 95 % of the causes are right, or an OOM kill was reported
 * as clean. It also ends with 1 if fewer than 80 % of the deaths from memory after more than a
 * minute left such a profile.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { startExporter, eventually } = require('../test/support/exporter')
const { spawnExporter } = require('../test/support/exporter-process')
const { parseOptions } = require('./options')

const MIB = 2 ** 20
const RIGHT_RATIO = 0.95
/** Duration from which a death must usually leave a profile. */
const SLOW_SECONDS = 60
const PROFILED_RATIO = 0.8
/** Functions of the app that leak. */
const LEAKING = ['leak', 'fill']
const AGENT = require.resolve('memwatch/agent')
const APP = path.join(__dirname, 'dying-app.js')

/**
 * @typedef {object} Staged
 * @property {string} way argument of bench/dying-app.js
 * @property {string[]} reason correct reasons if the exporter sees the process
 * @property {string[]} [blind] correct reasons if it does not; default: the same
 * @property {string[]} [flags] of Node
 * @property {number} [limitMib] of a memory cgroup
 * @property {NodeJS.Signals} [signal] signal sent to it
 * @property {number} [afterSeconds] seconds before the signal
 * @property {number} [roomMib] approximate memory that it fills in steps
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
  'heap full': {
    way: 'heap',
    roomMib: 60,
    flags: ['--max-old-space-size=64'],
    reason: ['heap_oom']
  },
  'heap full at once': {
    way: 'heap-blocking',
    flags: ['--max-old-space-size=256'],
    reason: ['heap_oom']
  },
  'heap full in a container': {
    way: 'heap',
    roomMib: 96,
    flags: ['--max-old-space-size=100'],
    limitMib: 512,
    reason: ['heap_oom']
  },
  'heap larger than its container': {
    way: 'heap',
    roomMib: 155,
    flags: ['--max-old-space-size=1024'],
    limitMib: 200,
    reason: ['oom_kill']
  },
  'memory full': { way: 'memory', roomMib: 210, limitMib: 256, reason: ['oom_kill'] },
  'memory full at once': {
    way: 'memory-blocking',
    limitMib: 256,
    reason: ['oom_kill'],
    blind: ['oom_kill', 'signal']
  }
}

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  deaths: { type: 'string', default: Object.keys(staged).join(',') },
  times: { type: 'string', default: '1' },
  lanes: { type: 'string', default: '2' },
  live: { type: 'string' }
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

/** Folder of --ship-to. */
const shipped = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-shipped-'))

/**
 * @param {string} node
 * @param {Staged} death
 * @param {string} name of the target
 * @param {import('../exporter/ingest/address').Address & { path: string }} socket
 * @returns {Promise<{ how: string, seconds: number }>} seconds: time since it began to die
 */
async function die (node, death, name, socket) {
  const { way, flags = [], limitMib, roomMib, signal, afterSeconds = 0.5 } = death
  const group =
    limitMib === undefined
      ? undefined
      : createMemoryGroup({ limitBytes: limitMib * MIB, name: 'death' })
  if (group && !group.supported) throw new Error(`no memory group: ${group.reason}`)
  const life = given.live === undefined
    ? []
    : [given.live, ...roomMib === undefined ? [] : [String(roomMib)]]
  const command = { command: node, args: [...flags, '-r', AGENT, APP, way, ...life] }
  const { command: file, args } = group ? group.wrap(command.command, command.args) : command
  const child = spawn(file, args, {
    env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket.path, MEMWATCH_NAME: name },
    stdio: ['ignore', 'pipe', 'ignore']
  })
  const ended = once(child, 'close')
  await Promise.race([once(child.stdout, 'data'), ended])
  const beganMs = performance.now()
  if (signal) setTimeout(() => child.kill(signal), 1000 * afterSeconds)
  child.stdout.resume()
  const [code, killedBy] = await ended
  await group?.remove()
  return { how: killedBy ?? `exit ${code}`, seconds: (performance.now() - beganMs) / 1000 }
}

/**
 * Captures of a target, in the exporter and in the folder.
 * @param {string} url of the exporter
 * @param {string} target
 * @returns {Promise<import('../exporter/captures/captures').Capture[]>} done: finished; shipped:
 *   completely sent
 */
async function readOutside (url, target) {
  const all = await (await fetch(`${url}/api/v1/captures`)).json()
  const stored = all.filter((/** @type {any} */ capture) =>
    capture.target === target && capture.state === 'done')
  const folder = path.join(shipped, target)
  const files = fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true }) : []
  return stored.filter((/** @type {any} */ { id }) =>
    files.some(file => String(file).includes(id) && String(file).endsWith('capture.json')))
}

/**
 * @param {{ url: string, socket: any }} exporter
 * @param {'seen' | 'blind'} sight
 * @param {string} node
 * @param {string} name
 */
async function judge (exporter, sight, node, name) {
  const target = `${sight}-${Math.random().toString(36).slice(2)}`
  const { how, seconds } = await die(node, staged[name], target, exporter.socket)
  const [death] = await eventually(
    async () => (await fetch(`${exporter.url}/api/v1/deaths?target=${target}`)).json(),
    deaths => deaths.length > 0,
    15_000
  ).catch(() => [])
  const right = (sight === 'blind' ? staged[name].blind : undefined) ?? staged[name].reason
  const good = right.includes(death?.reason)
  const captures = await readOutside(exporter.url, target)
  const sites = captures.flatMap(({ suspects }) => suspects?.sites.slice(0, 1) ?? [])
  const named = sites.find(site =>
    LEAKING.includes(site.function) && site.file.endsWith(path.basename(APP)))
  const ofMemory = staged[name].reason.some(reason => ['heap_oom', 'oom_kill'].includes(reason))
  console.log(
    [
      good ? 'right' : 'WRONG',
      sight,
      death?.node ?? '',
      name,
      how,
      death ? `${death.reason}, ${death.sure}` : 'nothing said',
      `${seconds.toFixed(1)} s to die`,
      `captures outside: ${captures.map(({ kind, rule, isPartial }) =>
        `${kind} (${rule}${isPartial ? ', partial' : ''})`).join(', ') || 'none'}`,
      named ? `names ${named.function}, line ${named.line}` : ofMemory ? 'NAMES NO LINE' : '',
      death?.text ?? ''
    ].join('\t')
  )
  const falselyClean = right.includes('oom_kill') && death?.reason === 'clean'
  return { good, falselyClean, ofMemory, isSlow: seconds > SLOW_SECONDS, named: Boolean(named) }
}

/**
 * @param {string} of
 * @param {{ named: boolean }[]} results
 */
const sayProfiled = (of, results) =>
  `${results.filter(({ named }) => named).length} of ${results.length} ${of} left a profile that ` +
    'names the leak'

async function main () {
  const shipTo = `file://${shipped}`
  const seeing = await startExporter({ shipTo })
  const blind = await spawnExporter({ ownProcessNamespace: true, args: ['--ship-to', shipTo] })
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
  fs.rmSync(shipped, { recursive: true })
  const right = results.filter(({ good }) => good).length
  const falselyClean = results.filter(({ falselyClean }) => falselyClean).length
  const ofMemory = results.filter(({ ofMemory }) => ofMemory)
  const slow = ofMemory.filter(({ isSlow }) => isSlow)
  console.log(
    `${right} of ${results.length} right (${((100 * right) / results.length).toFixed(1)} %); ` +
      `${falselyClean} kills for memory called clean\n` +
      `${sayProfiled('deaths from memory', ofMemory)}; ` +
      sayProfiled(`that took longer than ${SLOW_SECONDS} s`, slow)
  )
  const profiled = slow.filter(({ named }) => named).length
  process.exitCode = right < RIGHT_RATIO * results.length || falselyClean > 0 ||
    profiled < PROFILED_RATIO * slow.length
    ? 1
    : 0
}

main()

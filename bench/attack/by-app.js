'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')

const AGENT = require.resolve('memwatch/agent')
const LONGEST_RUN_MS = 30_000
/** Long enough for the agent to load, connect and send frames. */
const LIVE = 'setTimeout(() => { console.log("done") }, 2500)'

/**
 * Attacks by an app's code on the functions that the agent uses, before the agent has loaded.
 * @type {Record<string, string>}
 */
const APPS = {
  'no change': LIVE,
  'timers return numbers': `const t = setTimeout; ${LIVE}; globalThis.setTimeout = (...a) => { ` +
    't(...a); return 1 }; globalThis.setInterval = () => 2',
  'timers throw': `${LIVE}; for (const name of ["setTimeout", "setInterval", "setImmediate", ` +
    '"clearTimeout", "clearInterval"]) globalThis[name] = () => { throw new Error(name) }',
  'process is frozen': `${LIVE}; Object.freeze(process)`,
  'JSON and Date throw': `${LIVE}; JSON.stringify = JSON.parse = () => { throw new ` +
    'Error("JSON") }; Date.now = () => { throw new Error("Date") }',
  'performance throws': `${LIVE}; const { performance } = require("node:perf_hooks"); for ` +
    '(const name of ["now", "eventLoopUtilization"]) Object.defineProperty(performance, name, { ' +
      'value () { throw new Error(name) } })',
  'fs throws': `${LIVE}; const fs = require("node:fs"); for (const name of ["readSync", ` +
    '"openSync", "writeSync", "readFileSync", "lstatSync", "readdirSync", "closeSync"]) ' +
      'fs[name] = () => { throw new Error(name) }',
  'memoryUsage throws': `${LIVE}; process.memoryUsage = () => { throw new Error("memoryUsage") ` +
    '}; process.cpuUsage = () => { throw new Error("cpuUsage") }',
  'prototypes are poisoned': `${LIVE}; Object.prototype.type = "bye"; Array.prototype.extra = ` +
    '1; String.prototype.split = () => { throw new Error("split") }; Map.prototype.get = () => ' +
      '{ throw new Error("get") }',
  'net throws': `${LIVE}; require("node:net").connect = () => { throw new Error("connect") }; ` +
    'require("node:net").Socket.prototype.unref = () => { throw new Error("unref") }',
  'it throws itself': 'setTimeout(() => { throw new Error("the app’s own") }, 1500)',
  'it ends at once': 'process.exit(3)'
}

/**
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
async function run (args, env) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_RUN_MS)
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const [status, signal] = await once(child, 'close')
  clearTimeout(timer)
  return JSON.stringify({ status, signal, stdout, stderr })
}

/**
 * The app's code attacks its own agent: the app must end as it does without one.
 * @param {import('./attacks').Options} options
 */
async function appsAgainstAgent ({ say }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-by-app-'))
  const socket = path.join(folder, 's')
  const exporter = fork(path.join(__dirname, 'impostor.js'), [socket, 'silent'])
  const ended = once(exporter, 'exit')
  await once(exporter, 'message')
  const claims = []
  for (const [what, code] of Object.entries(APPS)) {
    say(`app: ${what}`)
    const [without, withAgent] = await Promise.all([
      run(['-e', code], {}),
      run(['-r', AGENT, '-e', code], { MEMWATCH_SOCKET: socket })
    ])
    claims.push({
      text: `${what}: output and exit code are the same without the agent`,
      held: without === withAgent,
      detail: without === withAgent ? '' : withAgent.slice(0, 200)
    })
  }
  exporter.disconnect()
  await ended
  fs.rmSync(folder, { recursive: true, force: true })
  return {
    tried: `${Object.keys(APPS).length} apps that replace, freeze or break the functions that ` +
      'the agent uses',
    claims
  }
}

module.exports = { appsAgainstAgent }

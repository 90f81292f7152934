'use strict'

const os = require('node:os')
const path = require('node:path')
const { isMainThread, threadId, resourceLimits } = require('node:worker_threads')
const { parseJson, readFileSync, timeOriginUnixMs } = require('./primordials')
const { version } = require('./package.json')
const { MALLOC_ENV, loadedAllocator } = require('./protocol/allocators')
const { MAX_TEXT, fitting } = require('./protocol/limits')
const { isCodeFlag, plainFlags, splitNodeOptions } = require('./protocol/node-options')
const { HOST_NAME, plainText } = require('./protocol/text-rules')

/**
 * Script of this isolate. Node.js makes its path absolute; anything else in its place is an
 * argument of the app, as after `-e CODE` or `-`, and in a worker without a file.
 * @param {Pick<NodeJS.Process, 'argv' | 'execArgv'>} [of]
 * @returns {string | undefined} absolute path
 */
function scriptPath ({ argv: [, script] = [], execArgv = [] } = process) {
  const isScript = typeof script === 'string' && path.isAbsolute(script)
  return isScript && !execArgv.some(flag => isCodeFlag(flag)) ? script : undefined
}

/**
 * @param {string} folder
 * @returns {{ name: string, bin?: unknown, folder: string } | undefined} nearest package.json with
 *   a name, in this folder or above
 */
function nearestPackage (folder) {
  for (; ; folder = path.dirname(folder)) {
    try {
      const { name, bin } = parseJson(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      if (typeof name === 'string' && name !== '') return { name, bin, folder }
    } catch {} // absent, or unreadable
    if (folder === path.dirname(folder)) return undefined
  }
}

/** Server of `next dev`. */
const NEXT_SERVER = /[\\/]next[\\/]dist[\\/]server[\\/]lib[\\/]start-server\.js$/

/**
 * Detects the program of an installed package that runs the user's app, such as `next start`,
 * `vite` or `fastify start`.
 * @param {string} script
 * @param {ReturnType<typeof nearestPackage>} own package of the script
 */
function isProgram (script, own) {
  if (/[\\/]\.bin[\\/][^\\/]+$/.test(script) || NEXT_SERVER.test(script)) return true
  const { bin = {}, folder = '' } = own ?? {}
  const files = typeof bin === 'string' ? [bin] : Object.values(bin ?? {})
  return script.includes('node_modules') && files.some(file => path.join(folder, file) === script)
}

/**
 * Name in the nearest package.json above the script, else the script's own. For the program of an
 * installed package the app is in the working folder, or beside node_modules.
 * @param {string | undefined} script absolute path
 * @param {object} [of]
 * @param {() => string} [of.workingFolder]
 * @param {boolean} [of.isWorker] workers of loaders report before the main thread, and run a
 *   package's script or none
 */
function appName (script, { workingFolder = process.cwd, isWorker = false } = {}) {
  if (!script && !isWorker) return 'node'
  const own = script ? nearestPackage(path.dirname(script)) : undefined
  let app
  try {
    if (!script || (isWorker ? script.includes('node_modules') : isProgram(script, own))) {
      app = nearestPackage(workingFolder()) ??
        (script && nearestPackage(script.split('node_modules', 1)[0]))
    }
  } catch {} // the working folder was removed
  const base = path.basename(script ?? '').replace(/\.[cm]?[jt]s$/, '')
  return (app || own)?.name ?? (base || 'node')
}

/**
 * Start of the process in the kernel's ticks: pid and start identify a process. Field 22 of
 * proc_pid_stat(5); the name in parentheses may contain anything.
 */
function startTimeTicks () {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
  } catch {
    return undefined // not Linux, or denied by the permission model
  }
}

/**
 * @param {Partial<import('./protocol/config').Config>} config
 * @returns {{ pod?: import('./protocol/frame').Pod }}
 */
function readPod ({ podUid, podName, podNamespace, container, injected }) {
  const pod = {
    ...(podUid && { uid: podUid }),
    ...(podName && { name: podName }),
    ...(podNamespace && { namespace: podNamespace }),
    ...(container && { container }),
    ...(injected && { injected })
  }
  return Object.keys(pod).length > 0 ? { pod } : {}
}

/**
 * @param {Partial<import('./protocol/config').Config>} config
 * @returns {import('./protocol/frame').Hello}
 */
function hello (config) {
  let maps
  try {
    maps = readFileSync('/proc/self/maps', 'utf8')
  } catch {} // not Linux, or denied by the permission model
  const constrained = /** @type {{ constrainedMemory?: () => number | undefined }} */ (process).constrainedMemory?.()
  const hostMemoryBytes = os.totalmem()
  const variables = MALLOC_ENV.filter(key => process.env[key])
  const values = fitting(variables.map(key => plainText(String(process.env[key]), MAX_TEXT)))
  const host = os.hostname()
  const isWorker = !isMainThread && !process.execArgv.some(flag => isCodeFlag(flag))
  return {
    agent: version,
    agentFolder: plainText(__dirname, MAX_TEXT),
    ...(HOST_NAME.test(host) && { host }),
    ...readPod(config),
    pid: process.pid,
    threadId,
    startedAtUnixMs: Math.round(timeOriginUnixMs),
    startTimeTicks: startTimeTicks(),
    name: plainText(config.name || appName(scriptPath(), { isWorker }), 128),
    intervalSeconds: 1,
    node: process.versions.node,
    v8: process.versions.v8,
    platform: process.platform,
    arch: process.arch,
    ...loadedAllocator(maps),
    pointerCompression: Boolean(/** @type {any} */ (process.config.variables).v8_enable_pointer_compression),
    execArgv: plainFlags(process.execArgv),
    nodeOptions: plainFlags(splitNodeOptions(process.env.NODE_OPTIONS ?? '')),
    mallocEnv: Object.fromEntries(values.map((value, i) => [variables[i], value])),
    allowedFlags: [...process.allowedNodeEnvironmentFlags],
    ...(!isMainThread && { resourceLimits: { ...resourceLimits } }),
    hostMemoryBytes,
    // No limit reads as undefined, 0 or about 2^63 and 2^64, by Node and cgroup version.
    ...(constrained && constrained < hostMemoryBytes && { constrainedBytes: constrained }),
    cores: os.availableParallelism?.() ?? os.cpus().length
  }
}

module.exports = { hello, appName, scriptPath }

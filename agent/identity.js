'use strict'

const os = require('node:os')
const path = require('node:path')
const { isMainThread, threadId, resourceLimits } = require('node:worker_threads')
const { parseJson, readFileSync, timeOriginUnixMs } = require('./primordials')
const { version } = require('./package.json')
const { MALLOC_ENV, loadedAllocator } = require('./protocol/allocators')
const { MAX_TEXT, fitting } = require('./protocol/limits')
const { isCodeFlag, plainFlags, splitNodeOptions } = require('./protocol/node-options')
const { APP_VERSION, HOST_NAME, plainText } = require('./protocol/text-rules')

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
 * @typedef {{ name: string, version?: unknown, bin?: unknown, folder: string } | undefined} Package
 *
 * @param {string} folder
 * @returns {Package} nearest package.json with a name, in this folder or above
 */
function nearestPackage (folder) {
  for (; ; folder = path.dirname(folder)) {
    try {
      const own = parseJson(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      if (typeof own.name === 'string' && own.name !== '') return { ...own, folder }
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
 * @param {Package} own package of the script
 */
function isProgram (script, own) {
  if (/[\\/]\.bin[\\/][^\\/]+$/.test(script) || NEXT_SERVER.test(script)) return true
  const { bin = {}, folder = '' } = own ?? {}
  const files = typeof bin === 'string' ? [bin] : Object.values(bin ?? {})
  return script.includes('node_modules') && files.some(file => path.join(folder, file) === script)
}

/**
 * Package of the app: the nearest one above the script. If the script is the program of an
 * installed package, it is the package in the working folder, or beside node_modules.
 * @param {string | undefined} script absolute path
 * @param {{ workingFolder?: () => string, isWorker?: boolean }} [of] isWorker: true in a worker;
 *   the workers of loaders report before the main thread, and run a package's script or none
 * @returns {Package}
 */
function appPackage (script, { workingFolder = process.cwd, isWorker = false } = {}) {
  if (!script && !isWorker) return undefined
  const own = script ? nearestPackage(path.dirname(script)) : undefined
  try {
    if (!script || (isWorker ? script.includes('node_modules') : isProgram(script, own))) {
      return nearestPackage(workingFolder()) ||
        (script && nearestPackage(script.split('node_modules', 1)[0])) || own
    }
  } catch {} // the working folder was removed
  return own
}

/**
 * @param {string | undefined} script
 * @param {Package} [app]
 * @returns {string} name of the app's package, else of the script
 */
const appName = (script, app = appPackage(script)) =>
  app?.name ?? (path.basename(script ?? '').replace(/\.[cm]?[jt]s$/, '') || 'node')

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
function readPod ({ podUid: uid, podName: name, podNamespace: namespace, container, injected }) {
  const pod = { uid, name, namespace, container, injected }
  const given = Object.entries(pod).filter(([, value]) => value)
  return given.length > 0 ? { pod: Object.fromEntries(given) } : {}
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
  const constrained = process.constrainedMemory?.()
  const hostMemoryBytes = os.totalmem()
  const variables = MALLOC_ENV.filter(key => process.env[key])
  const values = fitting(variables.map(key => plainText(String(process.env[key]), MAX_TEXT)))
  const host = os.hostname()
  const script = scriptPath()
  const isWorker = !isMainThread && !process.execArgv.some(flag => isCodeFlag(flag))
  const app = appPackage(script, { isWorker })
  const attributes = process.env.OTEL_RESOURCE_ATTRIBUTES ?? ''
  const appVersion = /(?:^|,)service\.version=([^,]*)/.exec(attributes)?.[1] ?? app?.version
  return {
    agent: version,
    agentFolder: plainText(__dirname, MAX_TEXT),
    ...(HOST_NAME.test(host) && { host }),
    ...readPod(config),
    pid: process.pid,
    threadId,
    startedAtUnixMs: Math.round(timeOriginUnixMs),
    startTimeTicks: startTimeTicks(),
    name: plainText(config.name || appName(script, app), 128),
    ...(typeof appVersion === 'string' && APP_VERSION.test(appVersion) && { appVersion }),
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
    // Without a limit the value is undefined, 0, or about 2^63 or 2^64, depending on the versions
    // of Node and cgroup.
    ...(constrained && constrained < hostMemoryBytes && { constrainedBytes: constrained }),
    cores: os.availableParallelism?.() ?? os.cpus().length
  }
}

module.exports = { hello, appName, appPackage, scriptPath }

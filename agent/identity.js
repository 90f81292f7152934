'use strict'

const os = require('node:os')
const path = require('node:path')
const { isMainThread, threadId, resourceLimits } = require('node:worker_threads')
const { parseJson, readFileSync, timeOriginUnixMs } = require('./primordials')
const { version } = require('./package.json')
const { HOST_NAME, plainText } = require('./text-rules')

/** Environment variables that steer an allocator. */
const MALLOC_ENV = [
  'LD_PRELOAD',
  'MALLOC_CONF',
  'GLIBC_TUNABLES',
  'MALLOC_ARENA_MAX',
  'MALLOC_MMAP_THRESHOLD_',
  'MALLOC_TRIM_THRESHOLD_',
  'MALLOC_MMAP_MAX_',
  'MALLOC_TOP_PAD_',
  'MIMALLOC_PURGE_DELAY',
  'TCMALLOC_RELEASE_RATE',
  'UV_THREADPOOL_SIZE'
]

/** A loaded object of this name is the allocator: it was put before libc. */
const ALLOCATORS = Object.freeze({
  jemalloc: /\/libjemalloc[^/]*$/,
  mimalloc: /\/libmimalloc[^/]*$/,
  tcmalloc: /\/libtcmalloc[^/]*$/
})

/**
 * libc and allocator, from the objects that are loaded: LD_PRELOAD may name what the loader did not
 * find.
 * @param {string | undefined} maps text of /proc/self/maps; undefined where it cannot be read
 * @returns {Pick<import('./frame').Hello, 'libc' | 'allocator' | 'allocatorPath'>}
 */
function loadedAllocator (maps) {
  if (maps === undefined) return { libc: 'unknown', allocator: 'unknown' }
  const objects = new Set(
    maps
      .split('\n')
      .map(line => line.slice(line.indexOf('/')))
      .filter(name => name.startsWith('/'))
  )
  const has = (/** @type {RegExp} */ pattern) => [...objects].find(name => pattern.test(name))
  const libc = has(/\/(ld-musl-[^/]*|libc\.musl-[^/]*)$/)
    ? 'musl'
    : has(/\/(libc\.so\.6|libc-2[^/]*\.so)$/)
      ? 'glibc'
      : 'other'
  for (const name of /** @type {(keyof typeof ALLOCATORS)[]} */ (Object.keys(ALLOCATORS))) {
    const allocatorPath = has(ALLOCATORS[name])
    if (allocatorPath) {
      return { libc, allocator: name, allocatorPath: plainText(allocatorPath, MAX_TEXT) }
    }
  }
  return { libc, allocator: libc }
}

/**
 * The script that this isolate runs. Node.js makes its path absolute; anything else in its place is
 * an argument of the app, as behind `-e CODE`, behind `-`, and in a worker that has no file.
 * @param {Pick<NodeJS.Process, 'argv' | 'execArgv'>} [of]
 * @returns {string | undefined} absolute path
 */
function scriptPath ({ argv: [, script] = [], execArgv = [] } = process) {
  const isScript = typeof script === 'string' && path.isAbsolute(script)
  return isScript && !execArgv.some(flag => isCodeFlag(flag)) ? script : undefined
}

/**
 * The name in the nearest package.json above the script, else the script's own.
 * @param {string | undefined} script absolute path
 */
function appName (script) {
  if (!script) return 'node'
  const base = path.basename(script).replace(/\.[cm]?[jt]s$/, '')
  for (let folder = path.dirname(script); ; folder = path.dirname(folder)) {
    try {
      const { name } = parseJson(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      if (typeof name === 'string' && name !== '') return name
    } catch {} // none here, or not readable
    if (folder === path.dirname(folder)) return base || 'node'
  }
}

/**
 * NODE_OPTIONS split as Node splits it: at spaces, with double quotes and backslashes
 * (src/node_options.cc).
 * @param {string} text
 */
function splitNodeOptions (text) {
  /** @type {string[]} */
  const options = []
  let current = ''
  let quoted = false
  let started = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === '\\' && quoted && i + 1 < text.length) current += text[++i]
    else if (character === '"') {
      quoted = !quoted
      started = true
    } else if (character === ' ' && !quoted) {
      if (started || current) options.push(current)
      current = ''
      started = false
    } else current += character
  }
  if (started || current) options.push(current)
  return options
}

/**
 * When the process started, as the kernel counts: with the pid it tells processes apart. Field 22
 * of proc_pid_stat(5); the name in parentheses may hold anything.
 */
function startTimeTicks () {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
  } catch {
    return undefined // not Linux, or closed by the permission model
  }
}

/** Stands for the value of an option that is code or a title: neither leaves the process. */
const HIDDEN = '<hidden>'
/** Options whose value is hidden, whatever it is. Node.js also reads `_` for `-` in a name. */
const CODE_OPTIONS = ['--eval', '--print']
const HIDDEN_OPTIONS = [...CODE_OPTIONS, '--title']
/** A module that is its own source, as in `--import data:text/javascript,...`. */
const DATA_URL = /^data:/i
/** Longest text of a list on the wire, most texts, and most characters of all of them. */
const MAX_TEXT = 4096
const MAX_TEXTS = 1000
const MAX_LIST = 16_384

/**
 * @param {string[]} texts
 * @returns {string[]} the first of them, as many as the wire takes
 */
function fitting (texts) {
  let length = 0
  return texts.slice(0, MAX_TEXTS).filter(text => (length += text.length) <= MAX_LIST)
}

/**
 * @param {string} flag
 * @returns {string} its name as Node.js documents it
 */
const nameOf = flag => flag.split('=', 1)[0].replaceAll('_', '-')

/**
 * @param {string} flag
 * @returns {boolean} whether it brings the source of the app with it
 */
const isCodeFlag = flag => /^-[a-zA-Z]*[ep]$/.test(flag) || CODE_OPTIONS.includes(nameOf(flag))

/** URLs are read without spaces and control characters. @param {string} value */
// eslint-disable-next-line no-control-regex
const isDataUrl = value => DATA_URL.test(value.replace(/[\x00-\x20]/g, ''))

/**
 * Flags as they were given, one for one, up to what the wire takes. Code and titles are hidden.
 * @param {string[]} flags
 * @returns {string[]}
 */
function plainFlags (flags) {
  let hidesNext = false
  return fitting(flags.map(flag => {
    const isValue = !flag.startsWith('-')
    if (isValue) {
      const hides = hidesNext || isDataUrl(flag)
      hidesNext = false
      return hides ? HIDDEN : plainText(flag, MAX_TEXT)
    }
    const hides = HIDDEN_OPTIONS.includes(nameOf(flag))
    const equals = flag.indexOf('=')
    hidesNext = equals < 0 && (hides || isCodeFlag(flag))
    return equals >= 0 && (hides || isDataUrl(flag.slice(equals + 1)))
      ? plainText(`${flag.slice(0, equals)}=${HIDDEN}`, MAX_TEXT)
      : plainText(flag, MAX_TEXT)
  }))
}

/**
 * @param {Partial<import('./config').Config>} config
 * @returns {{ pod?: import('./frame').Pod }}
 */
function podOf ({ podUid, podName, podNamespace, container, injected }) {
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
 * @param {Partial<import('./config').Config>} config
 * @returns {import('./frame').Hello}
 */
function hello (config) {
  let maps
  try {
    maps = readFileSync('/proc/self/maps', 'utf8')
  } catch {} // not Linux, or closed by the permission model
  const constrained = /** @type {{ constrainedMemory?: () => number | undefined }} */ (process).constrainedMemory?.()
  const hostMemoryBytes = os.totalmem()
  const variables = MALLOC_ENV.filter(key => process.env[key])
  const values = fitting(variables.map(key => plainText(String(process.env[key]), MAX_TEXT)))
  const host = os.hostname()
  return {
    agent: version,
    agentFolder: plainText(__dirname, MAX_TEXT),
    ...(HOST_NAME.test(host) && { host }),
    ...podOf(config),
    pid: process.pid,
    threadId,
    startedAtUnixMs: Math.round(timeOriginUnixMs),
    startTimeTicks: startTimeTicks(),
    name: plainText(config.name || appName(scriptPath()), 128),
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
    // Unlimited reads as undefined, 0 or about 2^63 and 2^64, by Node and cgroup version.
    ...(constrained && constrained < hostMemoryBytes && { constrainedBytes: constrained }),
    cores: os.availableParallelism?.() ?? os.cpus().length
  }
}

module.exports = {
  hello, loadedAllocator, appName, scriptPath, splitNodeOptions, plainFlags, MALLOC_ENV
}

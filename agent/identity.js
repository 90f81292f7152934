'use strict'

const os = require('node:os')
const path = require('node:path')
const { isMainThread, threadId, resourceLimits } = require('node:worker_threads')
const { parseJson, readFileSync, timeOriginUnixMs } = require('./primordials')
const { version } = require('./package.json')

/** Environment variables that steer an allocator. */
const MALLOC_ENV = [
  'LD_PRELOAD', 'MALLOC_CONF', 'GLIBC_TUNABLES', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_',
  'MALLOC_MMAP_MAX_', 'MALLOC_TOP_PAD_', 'MIMALLOC_PURGE_DELAY', 'TCMALLOC_RELEASE_RATE', 'UV_THREADPOOL_SIZE'
]

/** A loaded object of this name is the allocator: it was put before libc. */
const ALLOCATORS = Object.freeze({ jemalloc: /\/libjemalloc[^/]*$/, mimalloc: /\/libmimalloc[^/]*$/, tcmalloc: /\/libtcmalloc[^/]*$/ })

/**
 * libc and allocator, from the objects that are loaded: LD_PRELOAD may name what the loader did not find.
 * @param {string | undefined} maps text of /proc/self/maps; undefined where it cannot be read
 * @returns {Pick<import('./frame').Hello, 'libc' | 'allocator' | 'allocatorPath'>}
 */
function loadedAllocator (maps) {
  if (maps === undefined) return { libc: 'unknown', allocator: 'unknown' }
  const objects = new Set(maps.split('\n').map(line => line.slice(line.indexOf('/'))).filter(name => name.startsWith('/')))
  const has = (/** @type {RegExp} */ pattern) => [...objects].find(name => pattern.test(name))
  const libc = has(/\/(ld-musl-[^/]*|libc\.musl-[^/]*)$/) ? 'musl' : has(/\/(libc\.so\.6|libc-2[^/]*\.so)$/) ? 'glibc' : 'other'
  for (const name of /** @type {(keyof typeof ALLOCATORS)[]} */ (Object.keys(ALLOCATORS))) {
    const allocatorPath = has(ALLOCATORS[name])
    if (allocatorPath) return { libc, allocator: name, allocatorPath }
  }
  return { libc, allocator: libc }
}

/**
 * The name in the nearest package.json above the script, else the script's own.
 * @param {string | undefined} script process.argv[1]
 */
function appName (script) {
  if (!script) return 'node'
  const base = path.basename(script).replace(/\.[cm]?[jt]s$/, '')
  for (let folder = path.dirname(path.resolve(script)); ; folder = path.dirname(folder)) {
    try {
      const { name } = parseJson(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      if (typeof name === 'string' && name !== '') return name.slice(0, 128)
    } catch {} // none here, or not readable
    if (folder === path.dirname(folder)) return base.slice(0, 128) || 'node'
  }
}

/**
 * NODE_OPTIONS split as Node splits it: at spaces, with double quotes and backslashes (src/node_options.cc).
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
    else if (character === '"') { quoted = !quoted; started = true } else if (character === ' ' && !quoted) {
      if (started || current) options.push(current)
      current = ''
      started = false
    } else current += character
  }
  if (started || current) options.push(current)
  return options
}

/**
 * When the process started, as the kernel counts: with the pid it tells processes apart. Field 22 of proc_pid_stat(5); the name in
 * parentheses may hold anything.
 */
function startTimeTicks () {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
  } catch {
    return undefined // not Linux, or closed by the permission model
  }
}

/** After these an argument is source code: not ours to pass on. */
const CODE_FLAGS = /^(-[a-zA-Z]*[ep]|--eval|--print)$/
/** Longest argument that the wire takes. */
const MAX_TEXT = 4096

/** Flags as they were given, without code. @param {string[]} flags */
const plainFlags = flags => flags.slice(0, 1000).filter((flag, i) => !CODE_FLAGS.test(flags[i - 1] ?? '') && !/^--(eval|print)=/.test(flag)).map(flag => flag.slice(0, MAX_TEXT))

/**
 * @param {Partial<import('./config').Config>} config
 * @returns {{ pod?: import('./frame').Pod }}
 */
function podOf ({ podUid, podName, podNamespace, container, injected }) {
  const pod = { ...(podUid && { uid: podUid }), ...(podName && { name: podName }), ...(podNamespace && { namespace: podNamespace }), ...(container && { container }), ...(injected && { injected }) }
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
  const mallocEnv = Object.fromEntries(MALLOC_ENV.filter(key => process.env[key]).map(key => [key, String(process.env[key]).slice(0, 4096)]))
  return {
    agent: version,
    host: os.hostname(),
    ...podOf(config),
    pid: process.pid,
    threadId,
    startedAtUnixMs: Math.round(timeOriginUnixMs),
    startTimeTicks: startTimeTicks(),
    name: config.name || appName(process.argv[1]),
    intervalSeconds: 1,
    node: process.versions.node,
    v8: process.versions.v8,
    platform: process.platform,
    arch: process.arch,
    ...loadedAllocator(maps),
    pointerCompression: Boolean(/** @type {any} */ (process.config.variables).v8_enable_pointer_compression),
    execArgv: plainFlags(process.execArgv),
    nodeOptions: plainFlags(splitNodeOptions(process.env.NODE_OPTIONS ?? '')),
    mallocEnv,
    allowedFlags: [...process.allowedNodeEnvironmentFlags],
    ...(!isMainThread && { resourceLimits: { ...resourceLimits } }),
    hostMemoryBytes,
    // Unlimited reads as undefined, 0 or about 2^63 and 2^64, by Node and cgroup version.
    ...(constrained && constrained < hostMemoryBytes && { constrainedBytes: constrained }),
    cores: os.availableParallelism?.() ?? os.cpus().length
  }
}

module.exports = { hello, loadedAllocator, appName, splitNodeOptions, plainFlags, MALLOC_ENV }

'use strict'

/**
 * Situations in which a preload could do harm: each runs with and without the agent, and must end
 * with the same output, exit code and signal.
 *
 * @typedef {object} Situation
 * @property {string} name
 * @property {string} [code] code of the script, CommonJS
 * @property {Record<string, string>} [files] files beside the script: content by name
 * @property {string[]} [flags] flags of Node.js
 * @property {string[]} [args] arguments instead of the script's path; FOLDER is the script's
 *   folder, AGENT the agent's
 * @property {string} [stdin]
 * @property {NodeJS.ProcessEnv} [env]
 * @property {string} [needs] an expression that is true on the Node.js versions that support the
 *   situation
 * @property {string} [shell] shell script around the command "$@"; FREE is replaced by the number
 *   of descriptors that this Node.js itself holds
 * @property {boolean} [isNative] stderr holds a crash report of Node.js, whose addresses differ
 *   from run to run
 */

/** Long enough for some frames at an interval of 0.1 s. */
const LIVE = 'setTimeout(() => { console.log("end") }, 300)'
/**
 * Code that loads parts of Node.js that are loaded on first use: with the agent, some are already
 * loaded.
 */
const WHOLE_NODE =
  "process.stdout; process.stderr; require('fs').promises; require('net'); require('v8'); " +
    "require('worker_threads')"
/**
 * @param {string} code runs while the agent is running
 * @param {number} [ms]
 */
const later = (code, ms = 150) => `${WHOLE_NODE}; setTimeout(() => { ${code} }, ${ms}); ${LIVE}`
/** @param {string} flag of Node.js */
const knows = flag => `process.allowedNodeEnvironmentFlags.has('${flag}')`
const THROWS = '() => { throw new Error("of the app") }'
/**
 * Wraps code in which the timers are replaced as test libraries do it. The script is ended by a
 * real timer.
 */
const withRealTimers = (/** @type {string} */ code, ms = 0) => `
  const real = { ...globalThis, setTimeout, setInterval, setImmediate }
  const replace = () => { ${code} }
  ${ms === 0 ? 'replace()' : `real.setTimeout(replace, ${ms})`}
  real.setTimeout(() => { console.log('end') }, 400)`
const PERMISSION = ['--allow-fs-read=FOLDER/*', '--allow-fs-read=AGENT/*']

/** @type {Situation[]} */
const situations = [
  // Different ways to start an app.
  { name: 'a script from stdin', args: ['-'], stdin: LIVE },
  { name: 'a script from stdin that ends at once', args: ['-'], stdin: 'console.log(1)' },
  { name: '-e', args: ['-e', LIVE] },
  { name: '-p', args: ['-p', `${LIVE}; 42`] },
  {
    name: 'an ES module',
    args: ['FOLDER/app.mjs'],
    files: { 'app.mjs': `import fs from 'node:fs'; console.log(typeof fs.readSync); ${LIVE}` }
  },
  {
    name: 'an ES module from -e',
    flags: ['--input-type=module'],
    args: ['-e', `import 'node:fs'; ${LIVE}`]
  },
  {
    name: 'top-level await',
    args: ['FOLDER/app.mjs'],
    files: {
      'app.mjs': 'await new Promise(resolve => setTimeout(resolve, 350)); console.log("end")'
    }
  },
  {
    name: 'top-level await that never settles',
    args: ['FOLDER/app.mjs'],
    files: { 'app.mjs': 'setTimeout(() => {}, 300); await new Promise(() => {})' }
  },
  { name: '--check', flags: ['--check'], code: LIVE },
  {
    name: '--test',
    flags: ['--test', '--test-reporter=tap'],
    needs: knows('--test-reporter'),
    args: ['FOLDER/app.test.cjs'],
    files: { 'app.test.cjs': "require('node:test')('waits', { skip: true }, () => {})" },
    shell: '"$@" | grep -v duration_ms'
  },
  {
    name: '--watch',
    flags: ['--watch'],
    needs: "Number(process.versions.node.split('.')[0]) >= 20",
    code: 'setTimeout(() => { console.log("up"); process.kill(process.ppid, "SIGTERM") }, 400)',
    shell: '"$@" | grep up'
  },
  {
    name: 'a start-up snapshot is built',
    needs: knows('--build-snapshot') + " || process.versions.node.split('.')[0] >= 20",
    flags: ['--snapshot-blob', 'FOLDER/app.blob', '--build-snapshot'],
    code: "globalThis.built = 1; console.log('built')"
  },
  {
    name: 'a start-up snapshot is run',
    needs: "process.versions.node.split('.')[0] >= 20",
    code: "require('v8').startupSnapshot.setDeserializeMainFunction(() => { console.log('from a " +
      "snapshot'); setTimeout(() => {}, 300) })",
    shell:
      '"$1" --snapshot-blob FOLDER/run.blob --build-snapshot FOLDER/app.cjs && shift && ' +
        'node=NODE && "$node" --snapshot-blob FOLDER/run.blob PRELOAD main.js'
  },
  {
    name: 'the blob of a single executable is made',
    needs: "process.versions.node.split('.')[0] >= 20",
    flags: ['--experimental-sea-config'],
    args: ['FOLDER/sea.json'],
    code: LIVE,
    files: { 'sea.json': '{ "main": "FOLDER/app.cjs", "output": "FOLDER/sea.blob" }' }
  },
  {
    name: 'module hooks',
    needs: "typeof require('module').register === 'function'",
    args: ['--import', 'FOLDER/register.mjs', 'FOLDER/app.mjs'],
    files: {
      'register.mjs':
        "import { register } from 'node:module'; register('./hooks.mjs', import.meta.url)",
      'hooks.mjs':
        "export async function resolve (name, context, next) { return next(name === 'alias' ? " +
          "'node:os' : name, context) }",
      'app.mjs': `import os from 'alias'; console.log(typeof os.cpus); ${LIVE}`
    }
  },

  // Arguments of Node.js.
  { name: '--frozen-intrinsics', flags: ['--frozen-intrinsics'], code: LIVE },
  {
    name: '--disallow-code-generation-from-strings',
    flags: ['--disallow-code-generation-from-strings'],
    code: LIVE
  },
  { name: '--disable-proto=throw', flags: ['--disable-proto=throw'], code: LIVE },
  { name: '--disable-proto=delete', flags: ['--disable-proto=delete'], code: LIVE },
  { name: '--jitless', flags: ['--jitless'], code: LIVE },
  { name: '--throw-deprecation', flags: ['--throw-deprecation'], code: LIVE },
  {
    name: '--trace-deprecation --trace-warnings',
    flags: ['--trace-deprecation', '--trace-warnings'],
    code: LIVE
  },
  { name: '--pending-deprecation', flags: ['--pending-deprecation'], code: LIVE },
  {
    name: '--unhandled-rejections=strict',
    flags: ['--unhandled-rejections=strict'],
    code: later('Promise.reject(new Error("of the app"))')
  },
  {
    name: '--enable-source-maps',
    flags: ['--enable-source-maps'],
    code: later('throw new Error("of the app")')
  },
  { name: '--trace-exit', flags: ['--trace-exit'], code: later('process.exit(4)') },
  {
    name: 'the permission model with everything readable',
    needs: `${knows('--permission')} || ${knows('--experimental-permission')}`,
    flags: ['PERMISSION', '--allow-fs-read=*'],
    code: LIVE
  },
  {
    name: 'the permission model with its own folder only',
    needs: `${knows('--permission')} || ${knows('--experimental-permission')}`,
    flags: ['PERMISSION', ...PERMISSION],
    code: LIVE
  },
  {
    name: 'the permission model with workers',
    needs: `${knows('--permission')} || ${knows('--experimental-permission')}`,
    flags: ['PERMISSION', ...PERMISSION, '--allow-worker'],
    code: "new (require('worker_threads').Worker)('setTimeout(() => {}, 200)', { eval: true " +
      "}).on('exit', code => console.log(code))"
  },
  {
    name: 'a heap of 12 MB',
    flags: ['--max-old-space-size=12'],
    code: 'let kept = []; setInterval(() => { kept = Array.from({ length: 1000 }, (_, i) => ({ ' +
      `i })) }, 20).unref(); ${LIVE}`
  },
  {
    name: 'a small stack',
    flags: ['--stack-size=200'],
    code: later('const f = n => n === 0 ? 0 : 1 + f(n - 1); console.log(f(500))')
  },
  {
    name: 'a small young generation',
    flags: ['--max-semi-space-size=1'],
    code: `setInterval(() => { Array.from({ length: 1e4 }, () => ({})) }, 5).unref(); ${LIVE}`
  },

  // Replaced functions.
  {
    name: 'Object.prototype with values',
    code: 'for (const name of [\'fd\', \'path\', \'host\', \'read\', \'stop\', \'start\', \'encoding\', ' +
      '\'flag\', \'isOnDemand\', \'type\']) Object.prototype[name] = undefined; Object.prototype.polluted = ' +
        `1; ${LIVE}`
  },
  {
    name: 'Object.prototype with accessors that throw',
    code: later(
      "for (const name of ['agentErrors', 'v', 'sent', 'isOnDemand', 'framesDropped']) " +
        "Object.defineProperty(Object.prototype, name, { get () { throw new Error('read') }, " +
          "set () { throw new Error('written') }, configurable: true })"
    )
  },
  {
    name: 'Array.prototype with elements',
    code: later("Array.prototype[0] = 'first'; Array.prototype.more = () => {}")
  },
  {
    name: 'methods of Array that throw',
    code: later(
      'for (const name of [\'push\', \'splice\', \'map\', \'filter\', \'forEach\', \'join\', \'slice\', ' +
        `'find', 'reduce', 'shift', 'includes']) Array.prototype[name] = ${THROWS}`
    )
  },
  {
    name: 'another iterator of Array',
    code: later(
      'const own = Array.prototype[Symbol.iterator]; Array.prototype[Symbol.iterator] = ' +
        'function () { return { ...own.call(this), next: (all => ' +
          'all.next.bind(all))(own.call(this)) } }'
    )
  },
  {
    name: 'methods of Map, Set and WeakRef that throw',
    code: later(
      'for (const type of [Map, Set]) for (const name of [\'get\', \'set\', \'has\', \'add\', \'delete\', ' +
        `'values']) type.prototype[name] = ${THROWS}; WeakRef.prototype.deref = ${THROWS}; ` +
          `globalThis.WeakRef = ${THROWS}`
    )
  },
  {
    name: 'methods of String that throw',
    code: later(
      'for (const name of [\'split\', \'indexOf\', \'slice\', \'startsWith\', \'trim\', \'charCodeAt\', ' +
        `'match', 'matchAll', 'replace']) String.prototype[name] = ${THROWS}`
    )
  },
  { name: 'a bind that throws', code: later(`Function.prototype.bind = ${THROWS}`) },
  {
    name: 'methods of Promise that throw',
    code: later(
      `Promise.prototype.then = Promise.prototype.catch = Promise.prototype.finally = ${THROWS}`
    )
  },
  { name: 'another Promise', code: `globalThis.Promise = class extends Promise {}; ${LIVE}` },
  {
    name: 'Buffer that throws',
    code: later(
      'for (const name of [\'alloc\', \'from\', \'allocUnsafe\', \'allocUnsafeSlow\', \'byteLength\', ' +
        `'compare']) Buffer[name] = ${THROWS}; Buffer.prototype.latin1Slice = ${THROWS}`
    )
  },
  {
    name: 'methods of process that throw, from the start',
    code: 'for (const name of [\'on\', \'once\', \'emit\', \'removeListener\', \'memoryUsage\', ' +
      '\'cpuUsage\', \'hrtime\', \'uptime\', \'getActiveResourcesInfo\', \'nextTick\']) process[name] = ' +
        `${THROWS}; ${LIVE}`
  },
  {
    name: 'methods of process that throw, later',
    code: later(
      'for (const name of [\'on\', \'once\', \'emit\', \'removeListener\', \'memoryUsage\', \'cpuUsage\', ' +
        `'hrtime', 'nextTick', 'emitWarning']) process[name] = ${THROWS}`
    )
  },
  { name: 'a frozen process, from the start', code: `Object.freeze(process); ${LIVE}` },
  { name: 'a frozen process, later', code: later('Object.freeze(process)') },
  { name: 'a frozen process, and exit', code: later('Object.freeze(process); process.exit(3)') },
  {
    name: 'everything frozen',
    code: 'for (const name of Object.getOwnPropertyNames(globalThis)) { const value = ' +
      'globalThis[name]; try { if (typeof value === \'function\' && value.prototype) ' +
        'Object.freeze(value.prototype); Object.freeze(value) } catch {} } for (const name of ' +
          '[\'fs\', \'net\', \'events\', \'timers\', \'v8\', \'os\', \'perf_hooks\']) { const loaded = ' +
            'require(name); Object.freeze(loaded); if (loaded.prototype) ' +
              `Object.freeze(loaded.prototype) } ${LIVE}`
  },
  {
    name: 'timers that return numbers',
    code: withRealTimers(
      'let n = 0; globalThis.setTimeout = (...all) => { real.setTimeout(...all); return ++n }; ' +
        'globalThis.setInterval = globalThis.setImmediate = globalThis.setTimeout; ' +
          'globalThis.clearTimeout = () => {}'
    )
  },
  {
    name: 'timers that return numbers, later',
    code: withRealTimers(
      'let n = 0; globalThis.setTimeout = (...all) => { real.setTimeout(...all); return ++n }; ' +
        'globalThis.setInterval = globalThis.setImmediate = globalThis.setTimeout',
      150
    )
  },
  {
    name: 'timers that throw',
    code: withRealTimers(
      'for (const name of [\'setTimeout\', \'clearTimeout\', \'setInterval\', \'clearInterval\', ' +
        `'setImmediate', 'clearImmediate', 'queueMicrotask']) globalThis[name] = ${THROWS}`
    )
  },
  {
    name: 'timers that throw, later',
    code: withRealTimers(
      'for (const name of [\'setTimeout\', \'clearTimeout\', \'setInterval\', \'clearInterval\', ' +
        `'setImmediate', 'clearImmediate']) globalThis[name] = ${THROWS}`,
      150
    )
  },
  {
    name: 'timers that do nothing',
    code: withRealTimers(
      'globalThis.setTimeout = globalThis.setInterval = globalThis.setImmediate = () => {}; ' +
        'globalThis.clearTimeout = () => {}',
      20
    )
  },
  {
    name: 'timers of node:timers that throw',
    code: withRealTimers(
      `Object.assign(require('timers'), { setTimeout: ${THROWS}, setInterval: ${THROWS}, ` +
        `setImmediate: ${THROWS}, clearTimeout: ${THROWS} })`,
      20
    )
  },
  {
    name: 'unref of a timer throws',
    code: withRealTimers(
      `Object.getPrototypeOf(real.setTimeout(() => {}, 1)).unref = ${THROWS}`,
      20
    )
  },
  {
    name: 'fake timers after an emptied require.cache',
    code: `
      for (const file of Object.keys(require.cache)) delete require.cache[file]
      const timers = require('timers')
      const real = { ...timers }
      let faked = 0
      const names = ['setTimeout', 'setInterval', 'setImmediate']
      for (const name of names) timers[name] = (...given) => (faked++, real[name](...given))
      real.setTimeout(() => { console.log(faked) }, 600)`
  },
  { name: 'JSON that throws', code: `JSON.parse = JSON.stringify = ${THROWS}; ${LIVE}` },
  { name: 'JSON that throws, later', code: later(`JSON.parse = JSON.stringify = ${THROWS}`) },
  {
    name: 'a frozen Date that stands still',
    code: `Date.now = () => 0; Object.freeze(Date); ${LIVE}`
  },
  {
    name: 'Date and performance that throw',
    code: later(
      `Date.now = ${THROWS}; performance.now = ${THROWS}; performance.eventLoopUtilization = ` +
        `${THROWS}; performance.mark = ${THROWS}`
    )
  },
  {
    name: 'globals that are gone',
    code: "const { setTimeout } = globalThis; for (const name of ['performance', 'setTimeout', " +
      "'setInterval', 'setImmediate', 'clearTimeout', 'JSON', 'Date', 'Buffer', 'process', " +
        "'queueMicrotask', 'URL', 'WeakRef']) delete globalThis[name]; setTimeout(() => " +
          "require('fs').writeSync(1, 'end'), 350)"
  },
  {
    name: 'functions of fs that throw',
    code: later(
      'for (const name of [\'openSync\', \'readSync\', \'writeSync\', \'closeSync\', \'readFileSync\', ' +
        '\'statSync\', \'fstatSync\', \'lstatSync\', \'readdirSync\', \'existsSync\']) ' +
          `require('fs')[name] = ${THROWS}`
    )
  },
  { name: 'net.connect throws', code: `require('net').connect = ${THROWS}; ${LIVE}` },
  { name: 'require that throws', code: `require('module')._load = ${THROWS}; ${LIVE}` },
  {
    name: 'require with an empty cache',
    code: `for (const name of Object.keys(require.cache)) delete require.cache[name]; ${LIVE}`
  },
  {
    name: 'stack traces that throw',
    code: later(`Error.stackTraceLimit = 0; Error.prepareStackTrace = ${THROWS}`)
  },
  {
    name: 'another stdout.write',
    code: 'const write = process.stdout.write.bind(process.stdout); process.stdout.write = text ' +
      `=> write(text.toUpperCase()); ${LIVE}`
  },
  {
    name: 'a console that throws',
    code: later(`console.error = console.warn = console.log = ${THROWS}`).replace(
      'console.log("end")',
      'process.stdout.write("end")'
    )
  },

  // Removed functions.
  {
    name: 'a working folder that is removed',
    code: 'const fs = require(\'fs\'), os = require(\'os\'), path = require(\'path\'); const at = ' +
      'fs.mkdtempSync(path.join(os.tmpdir(), \'gone-\')); process.chdir(at); fs.rmdirSync(at); ' +
        `${LIVE}`
  },
  {
    name: 'no environment and no arguments',
    code: 'for (const name of Object.keys(process.env)) delete process.env[name]; ' +
      `process.argv.length = 0; process.execArgv.length = 0; process.title = 'x'; ${LIVE}`
  },
  {
    name: 'process.env and argv replaced',
    code: `process.env = null; process.argv = undefined; ${LIVE}`
  },
  {
    name: 'descriptors that are not the app’s, closed and used again',
    code: `
    const fs = require('fs')
    let turns = 0
    // Turns of the loop: what the agent begins in one, libuv completes in the next.
    const waiting = setInterval(() => {
      if (++turns < 10) return
      clearInterval(waiting)
      const own = new Set(fs.readdirSync('/proc/self/fd').map(Number))
      const isOthers = fd => { try { return /^(socket:|\\/proc\\/|\\/sys\\/)/.test(fs.readlinkSync('/proc/self/fd/' + fd)) } catch { return false } }
      for (const fd of own) if (fd > 2 && isOthers(fd)) fs.closeSync(fd)
      const files = Array.from({ length: 12 }, (_, i) => __dirname + '/own-' + i)
      const open = files.map(file => fs.openSync(file, 'w+'))
      setTimeout(() => {
        console.log(files.map(file => fs.readFileSync(file, 'utf8').length))
        for (const fd of open) { fs.writeSync(fd, 'x'); fs.closeSync(fd) }
        console.log(files.map(file => fs.readFileSync(file, 'utf8')))
        for (const file of files) fs.unlinkSync(file)
      }, 600)
    }, 30)`
  },
  {
    name: 'eight descriptors more than Node itself holds',
    shell: 'ulimit -n $((FREE + 8)); exec "$@"',
    code: "const fs = require('fs'); setTimeout(() => { console.log([1, 2].map(() => " +
      "fs.openSync(__filename, 'r') > 2)) }, 350); setTimeout(() => { console.log('end') }, 500)"
  },
  {
    name: 'no descriptors left',
    code: "const fs = require('fs'); setTimeout(() => { const open = []; try { for (;;) " +
      "open.push(fs.openSync('/dev/null', 'r')) } catch (error) { console.log(error.code) } " +
        'setTimeout(() => { for (const fd of open) fs.closeSync(fd); setTimeout(() => { ' +
          'console.log(fs.readFileSync(__filename).length > 0) }, 200) }, 250) }, 150)',
    shell: 'ulimit -n 64; exec "$@"'
  },
  {
    name: 'stdout that nobody reads',
    code: "setTimeout(() => { console.log('x'.repeat(1e5)) }, 200); setTimeout(() => {}, 300)",
    shell: '"$@" | head -c 1 >/dev/null; echo over'
  },

  // Threads and processes.
  {
    name: 'twenty workers that are terminated',
    code: "const { Worker } = require('worker_threads'); (async () => { for (let i = 0; i < 20; " +
      "i++) { const worker = new Worker('setInterval(() => {}, 1000)', { eval: true }); await " +
        'new Promise(resolve => setTimeout(resolve, 10 * (i % 5) * 5)); await ' +
          "worker.terminate() } console.log('end') })()"
  },
  {
    name: 'a worker that ends itself, one that throws, one out of memory',
    code: "const { Worker } = require('worker_threads'); const run = (code, options) => new " +
      "Promise(resolve => new Worker(code, { eval: true, ...options }).on('error', error => " +
        "console.log(error.code ?? error.message)).on('exit', code => { console.log(code); " +
          "resolve() })); (async () => { await run('setTimeout(() => process.exit(9), 200)'); " +
            "await run('setTimeout(() => { throw new Error(\"of a worker\") }, 200)'); await " +
              "run('const all = []; setInterval(() => { for (let i = 0; i < 1e5; i++) " +
                "all.push({ i }) }, 1)', { resourceLimits: { maxOldGenerationSizeMb: 8 } }) })()"
  },
  {
    name: 'a worker with no environment and its own stdio',
    code: "const { Worker } = require('worker_threads'); new Worker('console.log(1); " +
      "setTimeout(() => console.error(2), 200)', { eval: true, env: {}, argv: ['a'], execArgv: " +
        "[], stdout: true }).on('exit', code => console.log(code)).stdout.pipe(process.stdout)"
  },
  {
    name: 'fork',
    code: "if (process.argv[2]) setTimeout(() => process.send('hello', () => process.exit(5)), " +
      "250); else require('child_process').fork(__filename, ['child']).on('message', message => " +
        "console.log(message)).on('exit', code => console.log(code))"
  },
  {
    name: 'a cluster',
    code: "const cluster = require('cluster'); if (cluster.isPrimary) { for (let i = 0; i < 2; " +
      "i++) cluster.fork().on('exit', code => console.log(code)) } else setTimeout(() => " +
        'process.exit(6), 250)'
  },
  {
    name: 'a child with inherited descriptors',
    code: "const { spawn } = require('child_process'); setTimeout(() => spawn('sh', ['-c', 'ls " +
      "/proc/self/fd | wc -l'], { stdio: ['ignore', 'inherit', 'inherit'] }), 200)"
  },

  // Ways in which an app ends.
  { name: 'SIGTERM', code: later("process.kill(process.pid, 'SIGTERM')") },
  {
    name: 'SIGINT with a handler',
    code: "process.on('SIGINT', () => { console.log('int'); process.exit(2) }); setTimeout(() " +
      "=> process.kill(process.pid, 'SIGINT'), 250); setInterval(() => {}, 1000)"
  },
  { name: 'SIGKILL', code: later("process.kill(process.pid, 'SIGKILL')") },
  {
    name: 'SIGHUP, SIGUSR2',
    code: "process.on('SIGHUP', () => { console.log('hup'); setTimeout(() => " +
      "process.kill(process.pid, 'SIGUSR2'), 50) }); setTimeout(() => process.kill(process.pid, " +
        "'SIGHUP'), 250); setInterval(() => {}, 1000)"
  },
  { name: 'abort', code: later('process.abort()'), isNative: true },
  { name: 'an uncaught exception', code: later('throw new Error("of the app")') },
  {
    name: 'an uncaught exception within the first milliseconds',
    code: 'throw new Error("of the app")'
  },
  { name: 'throw null', code: later('throw null') },
  {
    name: 'an exception that cannot be shown',
    code: later(
      'throw { get stack () { throw 1 }, toString () { throw 2 }, [Symbol.toPrimitive] () { ' +
        'throw 3 } }'
    )
  },
  {
    name: 'a handler of uncaught exceptions',
    code: 'process.on(\'uncaughtException\', error => { console.log(error.message); ' +
      `process.exit(8) }); ${later('throw new Error("of the app")')}`
  },
  {
    name: 'a capture callback of uncaught exceptions',
    code: 'process.setUncaughtExceptionCaptureCallback(error => console.log(error.message)); ' +
      `${later('throw new Error("of the app")')}`
  },
  {
    name: 'a domain',
    code: 'const d = require(\'domain\').create(); d.on(\'error\', error => ' +
      `console.log(error.message)); d.run(() => { ${later('throw new Error("of the app")')} })`
  },
  { name: 'an unhandled rejection', code: later('Promise.reject(new Error("of the app"))') },
  {
    name: 'a handler of unhandled rejections',
    code: 'process.on(\'unhandledRejection\', reason => console.log(reason.message)); ' +
      `${later('Promise.reject(new Error("of the app"))')}`
  },
  { name: 'process.exit at once', code: 'process.exit(3)' },
  {
    name: 'process.exit after a block',
    code: 'for (const end = Date.now() + 250; Date.now() < end;); process.exit(3)'
  },
  {
    name: 'process.exit in an exit handler',
    code: `process.on('exit', code => { console.log(code); process.exit(9) }); ${LIVE}`
  },
  {
    name: 'an exit handler that throws',
    code: `process.on('exit', () => { throw new Error('at exit') }); ${LIVE}`
  },
  {
    name: 'process.exit in beforeExit',
    code: `process.on('beforeExit', () => process.exit(7)); ${LIVE}`
  },
  {
    name: 'process.exit in a microtask and in nextTick',
    code: later(
      'process.nextTick(() => process.exit(6)); Promise.resolve().then(() => process.exit(5))'
    )
  },
  {
    name: 'exitCode set at exit',
    code: `process.on('exit', () => { process.exitCode = 12 }); ${LIVE}`
  },
  { name: 'process.reallyExit', code: later('process.reallyExit(11)') },
  {
    name: 'process.exit where the stack is used up',
    code: later('const f = () => { try { f() } catch { process.exit(3) } }; f()')
  },
  {
    name: 'beforeExit that goes on twice',
    code: "let turns = 0; process.on('beforeExit', () => { if (turns++ < 2) setTimeout(() => " +
      'console.log(turns), 120) })'
  },
  { name: 'exit emitted by hand', code: later("process.emit('exit', 0)") },
  {
    name: 'a warning',
    code: later(
      "process.emitWarning('of the app', { code: 'APP' }); const e = new (require('events'))(); " +
        "for (let i = 0; i < 12; i++) e.on('x', () => {})"
    )
  }
]

module.exports = { situations }

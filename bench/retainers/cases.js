'use strict'

/**
 * A heap whose true holder is known.
 * @typedef {object} Case
 * @property {string} name
 * @property {'published' | 'own'} kind published: of bench/realworld/leaks/; own: a way of
 *   test/support/holding-app.js
 * @property {RegExp} holder what the first finding must name, in its sentence or on its path
 * @property {string | null} package whose code holds the pile; null: the app's own, or Node.js
 * @property {string} truth in words, from the public thread or the app's code
 * @property {string} [node] version, where the case does not say it
 */

/** @type {(name: string, holder: RegExp, owner: string | null, truth: string) => Case} */
const published = (name, holder, owner, truth) =>
  ({ name, kind: 'published', holder, package: owner, truth })

/** @type {(name: string, holder: RegExp, truth: string) => Case[]} */
const own = (name, holder, truth) => ['18.20.8', '24.21.0', '26.10.0']
  .map(node => ({ name, kind: 'own', holder, package: null, truth, node }))

/** @type {readonly Case[]} */
const cases = Object.freeze([
  published('abort-signal-any', /sourceSignalsCleanupRegistry|kDependantSignals/, null,
    'registry of source signals in node:internal/abort_controller'),
  published('ajv-compile', /`_cache` of Ajv|schema` .*ajv\/dist\/compile\/codegen\/scope/, 'ajv',
    'Ajv#_cache and the scope of its compiled schemas'),
  published('arktype-instances', /nodesByRegisteredId|\$ark/, '@ark/schema',
    'registry of nodes in @ark/schema'),
  published('axios-cancel-token', /Promise `promise` of CancelToken/, 'axios',
    'reactions of the promise of the CancelToken'),
  published('cls-hooked-promise', /`_contexts` of Namespace/, 'cls-hooked',
    'Namespace#_contexts'),
  published('debug', /`instances` of function createDebug/, 'debug', 'createDebug.instances'),
  published('express-rate-limit', /the timers.*express-rate-limit/s, 'express-rate-limit',
    'the interval of each MemoryStore'),
  published('express-session', /`sessions` of MemoryStore/, 'express-session',
    'MemoryStore#sessions'),
  published('fetch-signal', /requestFinalizer/, null,
    'a FinalizationRegistry of undici in Node.js'),
  published('graceful-fs-reloaded', /held by .*(ReadStream|WriteStream|fs\$|`fs`)/, 'graceful-fs',
    'each loaded copy wraps fs of the one before'),
  published('hogan-cache', /`cache` .*hogan/, 'hogan.js', 'Hogan.cache'),
  published('mem-max-age', /Map `cache`/, 'mem', 'the cache of mem'),
  published('mustache-cache', /`_cache` .*mustache/, 'mustache', 'templateCache of mustache'),
  published('otel-two-readers', /`_unreportedAccumulations`/, '@opentelemetry/sdk-metrics',
    'TemporalMetricProcessor#_unreportedAccumulations'),
  published('performance-marks', /(measure|mark)EntryBuffer/, null,
    'entry buffers of node:internal/perf/observe'),
  published('promise-race', /Promise `shutdown`.*pending promise/s, null,
    'reactions of the pending promise'),
  published('require-uncached', /`children` of Module/, 'require-uncached',
    'children of the module that requires'),
  published('stealthy-require', /`children` of Module/, null,
    "children of the app's module, which requires"),
  published('vm-compile-function', /CompiledFnEntry/, null, 'CompiledFnEntry of node:vm'),
  published('winston-per-request', /listener of `drain` on a Stream/, 'winston',
    'listeners of the shared transport'),
  published('z-schema-cache', /of ReferenceCache/, 'z-schema', 'ReferenceCache of z-schema'),
  published('zod-registry', /`_map` of \$ZodRegistry/, 'zod', 'the global registry of zod'),
  published('http-proxy-aborted', /web-incoming/, 'http-proxy',
    'the request to the backend, held by its open socket'),
  published('nodemailer-pool', /smtp-connection/, 'nodemailer',
    'pooled connections, held by their sockets and timers'),
  ...own('Map of a module', /Map `sessions`/, 'sessions'),
  ...own('closure', /Array `pending`/, 'pending'),
  ...own('listener', /`order` on an EventEmitter/, 'listeners of order'),
  ...own('listener of an EventTarget', /listener on an (EventTarget|AbortSignal)/, 'listeners of abort'),
  ...own('timer', /the timers/, 'timers'),
  ...own('pending promise', /Promise `stopped`/, 'stopped'),
  ...own('async function that waits', /Promise `ready`/, 'ready'),
  ...own('AsyncLocalStorage', /store of an AsyncLocalStorage/, 'the store, held by timers'),
  ...own('FinalizationRegistry', /FinalizationRegistry `registry`/, 'registry'),
  ...own('static field', /Set `all` of function Registry/, 'Registry.all'),
  ...own('global variable', /global variable `leaked`/, 'globalThis.leaked'),
  ...own('linked list', /Object `queue`/, 'queue.head'),
  ...own('shards of a cache', /Array `shards`/, 'shards'),
  ...own('tree without siblings', /`root`|Object `tree`/, 'tree.root'),
  ...own('WeakMap with keys that live', /Array `keys`/, 'keys')
])

module.exports = { cases }

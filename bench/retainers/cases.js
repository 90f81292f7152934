'use strict'

/**
 * A heap whose true holder is known.
 * @typedef {object} Case
 * @property {string} name
 * @property {'published' | 'own' | 'unseen'} kind published: of bench/realworld/leaks/; own: a way
 *   of test/support/holding-app.js; unseen: an app of unseen/, two snapshots
 * @property {RegExp} holder text that the first finding must contain, in its sentence or on its
 *   path
 * @property {string | null} package package whose code holds the pile; null: the app itself, or
 *   Node.js
 * @property {string} truth sentence about the holder, from the public thread or the app's code
 * @property {string} [node] version, if the case does not contain it
 * @property {Record<string, string>} [packages] packages of unseen/packages/ that the app uses,
 *   with the folder of each below node_modules
 */

/** @type {(name: string, holder: RegExp, owner: string | null, truth: string) => Case} */
const published = (name, holder, owner, truth) =>
  ({ name, kind: 'published', holder, package: owner, truth })

/** @type {(name: string, holder: RegExp, truth: string) => Case[]} */
const own = (name, holder, truth) => ['18.20.8', '24.21.0', '26.10.0']
  .map(node => ({ name, kind: 'own', holder, package: null, truth, node }))

/**
 * @type {(name: string, holder: RegExp, truth: string, owner?: string | null, packages?:
 *   Record<string, string>) => Case[]}
 */
const unseen = (name, holder, truth, owner = null, packages = {}) => ['20.20.2', '24.21.0']
  .map(node => ({ name, kind: 'unseen', holder, package: owner, truth, node, packages }))

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
    'each loaded copy, which wraps the previous one'),
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
    'children of the requiring module'),
  published('stealthy-require', /`children` of Module/, null,
    "children of the app's module, which calls require"),
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
  ...own('WeakMap with keys that live', /Array `keys`/, 'keys'),
  ...own('one AsyncLocalStorage of two', /store of an AsyncLocalStorage/, 'the store, held by timers'),
  ...own('store of the main program', /Array `seen`.*store of an AsyncLocalStorage/s, 'the store'),
  ...own('handle of native code', /handle of native code/, 'native ports'),
  ...own('exports of a module', /Array `kept`.*the module cache/s, 'module.exports.kept'),
  ...own('interval', /the timers/, 'timers'),
  ...own('listener on a class of the app', /listener of `paid` on a Basket/, 'listeners of paid'),
  ...own('slice of a large Buffer', /Map `tokens`/, 'tokens'),
  ...own('slices of one large Buffer', /slices keep .* Map `parts`/, 'parts'),
  ...unseen('closure-arrays', /Array `handlers`/, 'closures over arrays in handlers'),
  ...unseen('promise-race', /Promise `shutdown`.*pending promise/s, 'reactions of shutdown'),
  ...unseen('als-store', /store of an AsyncLocalStorage.*Array `waiting`/s,
    'stores of the functions in the Array waiting'),
  ...unseen('bus-listeners', /listener of `order` on a Bus/, 'listeners on the shared bus',
    '@acme/bus', { '@acme/bus': '@acme/bus' }),
  ...unseen('registry-package', /Map `inFlight`/, 'inFlight of the package', 'request-registry',
    { 'request-registry': 'request-registry' }),
  ...unseen('lru-unbounded', /Map `items` of LRU/, 'LRU#items', 'tiny-lru',
    { 'tiny-lru': '.pnpm/tiny-lru@2.1.0/node_modules/tiny-lru' }),
  ...unseen('interval-closure', /Array `samples`.*timer/s, 'samples, in the closure of an ' +
    'interval'),
  ...unseen('finalization', /FinalizationRegistry `registry`/, 'values of the ' +
    'FinalizationRegistry registry'),
  ...unseen('class-static', /Map `open` of function Connection/, 'Connection.open'),
  ...unseen('symbol-cache', /<symbol cache>/, 'a property keyed by a symbol'),
  ...unseen('esm-private-queue', /Set `#tasks` of Queue/, 'Queue##tasks', 'job-queue',
    { 'job-queue': '.pnpm/job-queue@3.0.0/node_modules/job-queue' }),
  ...unseen('promise-memo', /Object `memo`/, 'memo, an object of settled promises',
    'dataset-loader',
    { 'dataset-loader': 'dataset-loader' }),
  ...unseen('nested-package', /Array `spans` of Tracker/, 'Tracker#spans of the inner package',
    'inner', { outer: 'outer', inner: 'outer/node_modules/inner' }),
  ...unseen('generator-waits', /Set `subscriptions`/, 'subscriptions'),
  ...unseen('http-keepalive', /Array `pendingResponses`/, 'pendingResponses, and open sockets'),
  ...unseen('two-maps', /Map `tenants`/, 'the Maps in the Map tenants'),
  ...unseen('stream-unread', /`buffer` of ReadableState/, 'buffer of an unread stream'),
  ...unseen('weakref-cache', /Map `byUrl`/, 'keys of byUrl'),
  ...unseen('error-stacks', /Array `failures`/, 'failures'),
  ...unseen('bound-functions', /Array `retries`/, 'retries'),
  ...unseen('event-once', /listener of `(ready|error)` on an EventEmitter/, 'listeners of once()'),
  ...unseen('abort-timeout', /listener on an (EventTarget|AbortSignal)/, 'listeners of a signal')
])

module.exports = { cases }

'use strict'

const { has } = require('./node-versions')

/**
 * Versions of Node.js that accept each flag in NODE_OPTIONS. The list has each flag of
 * process.allowedNodeEnvironmentFlags and its negation, tried on the binaries named in
 * node-versions.js. '20-' means 20 to 26. A --no- form has a row where it differs. Other versions
 * exit at start: "is not allowed in NODE_OPTIONS".
 * @type {[lines: string, ...flags: string[]][]}
 */
const TAKEN = [
  ['18 20-', 'test-reporter test-reporter-destination test-shard'],
  ['18 20-22', 'experimental-default-type'],
  [
    '18-21',
    'experimental-network-imports experimental-policy no-stack-trace-limit policy-integrity'
  ],
  ['18-21 23', 'no-experimental-wasm-modules'],
  [
    '18-22',
    'huge-max-old-generation-size no-experimental-fetch no-experimental-global-customevent ' +
      'no-experimental-global-webcrypto',
    'trace-atomics-wait'
  ],
  [
    '18-',
    'abort-on-uncaught-exception addons conditions debug-arraybuffer-allocations debug-port ' +
      'deprecation diagnostic-dir disable-proto',
    'disallow-code-generation-from-strings dns-result-order enable-fips ' +
      'enable-network-family-autoselection enable-source-maps',
    'es-module-specifier-resolution experimental-abortcontroller experimental-fetch ' +
      'experimental-global-customevent',
    'experimental-global-webcrypto experimental-import-meta-resolve experimental-json-modules ' +
      'experimental-loader experimental-modules',
    'experimental-repl-await experimental-report experimental-shadow-realm ' +
      'experimental-specifier-resolution experimental-top-level-await',
    'experimental-vm-modules experimental-wasi-unstable-preview1 experimental-wasm-modules ' +
      'experimental-worker',
    'extra-info-on-fatal-exception force-async-hooks-checks force-context-aware force-fips ' +
      'force-node-api-uncaught-exceptions-policy',
    'frozen-intrinsics global-search-paths heapsnapshot-near-heap-limit heapsnapshot-signal ' +
      'http-parser icu-data-dir import input-type',
    'insecure-http-parser inspect inspect-brk inspect-port inspect-publish-uid ' +
      'interpreted-frames-native-stack jitless loader',
    'max-http-header-size max-old-space-size max-semi-space-size napi-modules node-memory-debug ' +
      'node-snapshot openssl-config',
    'openssl-legacy-provider openssl-shared-config pending-deprecation perf-basic-prof ' +
      'perf-basic-prof-only-functions perf-prof',
    'perf-prof-unwinding-info preserve-symlinks preserve-symlinks-main redirect-warnings ' +
      'report-compact report-dir report-directory',
    'report-filename report-on-fatalerror report-on-signal report-signal ' +
      'report-uncaught-exception require secure-heap secure-heap-min',
    'snapshot-blob stack-trace-limit test-only throw-deprecation title tls-cipher-list ' +
      'tls-keylog tls-max-v1.2 tls-max-v1.3 tls-min-v1.0',
    'tls-min-v1.1 tls-min-v1.2 tls-min-v1.3 trace-deprecation trace-event-categories ' +
      'trace-event-file-pattern trace-events-enabled',
    'trace-exit trace-sigint trace-sync-io trace-tls trace-uncaught trace-warnings ' +
      'track-heap-objects unhandled-rejections use-bundled-ca',
    'use-largepages use-openssl-ca v8-pool-size verify-base-objects warnings watch watch-path ' +
      'watch-preserve-output zero-fill-buffers'
  ],
  ['19', 'no-experimental-wasi-unstable-preview1'],
  [
    '20 22-',
    'allow-wasi disable-wasm-trap-handler experimental-eventsource ' +
      'experimental-print-required-tla experimental-require-module expose-gc',
    'heap-prof heap-prof-dir heap-prof-interval heap-prof-name inspect-wait ' +
      'network-family-autoselection-attempt-timeout',
    'report-exclude-network trace-require-module'
  ],
  ['20-23', 'experimental-permission'],
  [
    '20-',
    'allow-addons allow-child-process allow-fs-read allow-fs-write allow-worker disable-warning ' +
      'enable-etw-stack-walking',
    'experimental-detect-module experimental-websocket network-family-autoselection trace-promises'
  ],
  ['21-', 'experimental-global-navigator'],
  ['22-23', 'experimental-async-context-frame'],
  ['22 24-', 'use-env-proxy watch-kill-signal'],
  ['22-25', 'experimental-transform-types'],
  [
    '22-',
    'cpu-prof cpu-prof-dir cpu-prof-interval cpu-prof-name disable-sigusr1 entry-url ' +
      'experimental-addon-modules experimental-sqlite',
    'experimental-strip-types experimental-webstorage localstorage-file permission ' +
      'report-exclude-env test-coverage-branches',
    'test-coverage-exclude test-coverage-functions test-coverage-include test-coverage-lines ' +
      'test-name-pattern test-skip-pattern trace-env',
    'trace-env-js-stack trace-env-native-stack use-system-ca'
  ],
  ['23-', 'experimental-quic experimental-test-isolation test-isolation'],
  [
    '24 26-',
    'allow-openssl-store experimental-import-text experimental-package-map test-random-seed ' +
      'test-randomize'
  ],
  [
    '24-',
    'allow-inspector async-context-frame experimental-stream-iter permission-audit ' +
      'require-module strip-types test-global-setup',
    'test-rerun-failures'
  ],
  ['25-', 'allow-net webstorage'],
  [
    '26-',
    'allow-ffi allow-fs-vfs bench-isolation bench-name-pattern bench-reporter ' +
      'bench-reporter-destination bench-samples bench-warmup',
    'enable-fips-indicator-events experimental-bench experimental-dtls experimental-ffi ' +
      'experimental-vfs experimental-web-worker',
    'test-coverage-include-all vfs-mount worker-snapshot'
  ]
]

/**
 * First minor versions of flags about the heap, found by trying them.
 * @type {Readonly<Record<string, import('./node-versions').Since>>}
 */
const TAKEN_SINCE = Object.freeze({
  '--max-heap-size': { 24: 15, 25: 9, 26: 0 },
  '--max-old-space-size-percentage': { 22: 21, 24: 6, 25: 0, 26: 0 }
})

/**
 * Flags for the command line only. Only the first two change limits of the heap; plan-flags.js
 * handles these two.
 */
const COMMAND_LINE_ONLY = new Set([
  '--optimize-for-size',
  '--lite-mode',
  '--min-semi-space-size',
  '--semi-space-growth-factor',
  '--initial-old-space-size',
  '--initial-heap-size',
  '--gc-interval',
  '--trace-gc',
  '--trace-gc-nvp',
  '--trace-gc-verbose',
  '--stack-size',
  '--prof',
  '--env-file',
  '--env-file-if-exists',
  '--run',
  '--test'
])

const NEWEST_LINE = 26

/**
 * @param {string} lines
 * @returns {number[]}
 */
const linesOf = lines => lines.split(' ').flatMap(range => {
  const [first, last = first] = range.split('-').map(text => Number(text || NEWEST_LINE))
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
})

/** @type {Map<string, Set<number>>} */
const linesThatTake = new Map(TAKEN.flatMap(([lines, ...texts]) => {
  const set = new Set(linesOf(lines))
  return texts.join(' ').split(' ').map(name => /** @type {[string, Set<number>]} */ ([`--${name}`, set]))
}))

/**
 * @param {string} flag
 * @returns {Set<number> | undefined}
 */
const entryOf = flag => linesThatTake.get(flag) ?? linesThatTake.get(flag.replace('--no-', '--'))

/**
 * @param {string} flag with dashes
 * @returns {boolean} true if a known version accepts the flag in NODE_OPTIONS, or V8 accepts it on
 *   the command line
 */
const isKnownFlag = flag =>
  entryOf(flag) !== undefined || TAKEN_SINCE[flag] !== undefined || COMMAND_LINE_ONLY.has(flag)

/**
 * @param {import('./node-versions').NodeVersion} version
 * @param {string} flag with dashes
 * @returns {boolean} true if this version starts with the flag in NODE_OPTIONS
 */
function takesInNodeOptions (version, flag) {
  const since = TAKEN_SINCE[flag]
  return since
    ? has(version, since)
    : (entryOf(flag)?.has(Math.min(version.major, NEWEST_LINE)) ?? false)
}

module.exports = { takesInNodeOptions, isKnownFlag, TAKEN_SINCE }

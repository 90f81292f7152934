'use strict'

const { defineKnownBug } = require('./define-known-bug')

/**
 * Known memory bugs of Node.js. Each boundary of a range was tested with the binaries on both sides
 * of it.
 */
const nodeBugs = Object.freeze([
  defineKnownBug({
    id: 'blob-stream',
    package: 'node',
    affected: '>=24.16.0 <24.20.0 || >=26.0.0 <26.6.0',
    title: 'Blob.stream() keeps its source',
    when: 'a Blob is read as a stream, or is the body of fetch() or of a Response',
    diagnoses: ['native-memory-leak', 'js-heap-leak'],
    fixed: ['24.20.0', '26.6.0'],
    workaround: 'bytes, or arrayBuffer() of the Blob, instead of the Blob',
    thread: 'https://github.com/nodejs/node/issues/63574',
    suspects: [['node:internal/blob']]
  }),
  defineKnownBug({
    id: 'abort-signal-any-aborted',
    package: 'node',
    affected: '>=20.3.0 <24.20.0 || >=26.0.0 <26.7.0',
    title: 'AbortSignal.any() with a listener keeps aborted signals',
    when: 'one of its signals is long-lived, and the others abort',
    diagnoses: ['js-heap-leak'],
    fixed: ['24.20.0', '26.7.0'],
    workaround: 'removeEventListener() when the signal is aborted',
    thread: 'https://github.com/nodejs/node/issues/64476',
    suspects: [['node:internal/abort_controller', 'node:internal/event_target']]
  }),
  defineKnownBug({
    id: 'abort-signal-any',
    package: 'node',
    affected: '>=20.3.0 <24.16.0 || >=26.0.0 <26.1.0',
    title: 'AbortSignal.any() with a long-lived signal',
    when: 'AbortSignal.any() is called again and again with the same signal',
    diagnoses: ['js-heap-leak'],
    fixed: ['24.16.0', '26.1.0'],
    workaround: 'addEventListener() on each signal, and removeEventListener() afterwards',
    thread: 'https://github.com/nodejs/node/issues/54614',
    suspects: [['node:internal/abort_controller']]
  }),
  defineKnownBug({
    id: 'abort-signal-any-timeout',
    package: 'node',
    affected: '>=22.16.0 <23.0.0 || >=24.0.0 <24.16.0 || >=26.0.0 <26.1.0',
    title: 'AbortSignal.any() with AbortSignal.timeout()',
    when: 'AbortSignal.any() is called with a timeout and no listener is added',
    diagnoses: ['js-heap-leak'],
    fixed: ['24.16.0', '26.1.0'],
    workaround: 'setTimeout() that aborts a controller',
    thread: 'https://github.com/nodejs/node/pull/60185',
    suspects: [
      ['node:internal/abort_controller', 'node:timers'],
      ['node:internal/abort_controller', 'node:internal/timers']
    ]
  }),
  defineKnownBug({
    id: 'abort-signal-any-listener',
    package: 'node',
    affected: '>=20.3.0 <22.13.0',
    title: 'AbortSignal.any() whose signal has a listener',
    when: 'a listener is added to its signal, and none of its source signals aborts',
    diagnoses: ['js-heap-leak'],
    fixed: ['22.13.0'],
    workaround: 'removeEventListener() when the work is done',
    thread: 'https://github.com/nodejs/node/issues/55328',
    suspects: [['node:internal/abort_controller', 'node:internal/event_target']]
  }),
  defineKnownBug({
    id: 'vm-compile-function',
    package: 'node',
    affected: '>=18.0.0 <18.20.0 || >=20.0.0 <20.8.0',
    title: 'vm.compileFunction() with importModuleDynamically is never collected',
    when: 'vm.compileFunction() is called with importModuleDynamically, as Jest does',
    diagnoses: ['js-heap-leak'],
    fixed: ['18.20.0', '20.8.0'],
    thread: 'https://github.com/nodejs/node/issues/42080',
    suspects: [['node:vm'], ['node:internal/vm']]
  }),
  defineKnownBug({
    id: 'vm-synthetic-module',
    package: 'node',
    affected: '>=18.0.0 <18.20.0 || >=20.0.0 <20.8.0',
    title: 'vm.SyntheticModule is never collected',
    when: 'modules are made by node:vm, as Jest does for ES modules',
    diagnoses: ['js-heap-leak'],
    fixed: ['18.20.0', '20.8.0'],
    thread: 'https://github.com/nodejs/node/issues/44211',
    suspects: [['node:internal/vm/module']]
  }),
  defineKnownBug({
    id: 'fetch-signal',
    package: 'node',
    affected: '>=18.13.0 <18.17.0',
    title: 'fetch() keeps the AbortSignal of each request',
    when: 'fetch() is called with a signal',
    diagnoses: ['js-heap-leak'],
    fixed: ['18.17.0'],
    thread: 'https://github.com/nodejs/node/issues/46435',
    suspects: [['node:internal/deps/undici/undici']]
  }),
  defineKnownBug({
    id: 'performance-marks',
    package: 'node',
    affected: '>=16.7.0',
    kind: 'trap',
    title: 'performance marks and measures that are never cleared',
    when: 'performance.mark() or measure() is called again and again',
    diagnoses: ['js-heap-leak'],
    workaround: 'clearMarks() and clearMeasures()',
    thread: 'https://github.com/nodejs/node/issues/42503',
    suspects: [['node:internal/perf/usertiming'], ['node:internal/perf/observe']]
  }),
  defineKnownBug({
    id: 'promise-race',
    package: 'node',
    affected: '*',
    kind: 'trap',
    title: 'Promise.race() with a promise that never settles',
    when: 'a long-lived promise takes part in many races',
    diagnoses: ['js-heap-leak'],
    workaround: 'an AbortSignal, or a race without the long-lived promise',
    thread: 'https://github.com/nodejs/node/issues/17469',
    suspects: [['race']]
  })
])

module.exports = { nodeBugs }

'use strict'

const { defineKnownBug } = require('./define-known-bug')

/** Known memory bugs of Node.js, the newest first. */
const nodeBugs = Object.freeze([
  defineKnownBug({
    id: 'blob-stream',
    package: 'node',
    affected: '>=24.16.0 <24.19.0 || >=26.0.0 <26.5.0',
    title: 'Blob.stream() keeps its source',
    when: 'a Blob is read as a stream, or is the body of fetch() or of a Response',
    diagnoses: ['native-memory-leak', 'js-heap-leak'],
    fixed: ['24.19.0', '26.5.0'],
    workaround: 'bytes, or arrayBuffer() of the Blob, instead of the Blob',
    thread: 'https://github.com/nodejs/node/issues/63574',
    suspects: ['node:internal/blob']
  }),
  defineKnownBug({
    id: 'zlib-oneshot',
    package: 'node',
    affected: '>=24.15.0 <=24.20.0',
    title: 'results of zlib.gzip() wait for a GC that nothing asks for',
    when: 'gzip(), deflate() and their like are called with callbacks',
    diagnoses: ['array-buffer-pile-up', 'native-memory-leak'],
    thread: 'https://github.com/nodejs/node/issues/65600',
    suspects: ['node:zlib']
  }),
  defineKnownBug({
    id: 'abort-signal-any',
    package: 'node',
    affected: '>=20.3.0 <24.21.0',
    title: 'AbortSignal.any() with a signal that lives long',
    when: 'AbortSignal.any() is called again and again with the same signal',
    diagnoses: ['js-heap-leak'],
    fixed: ['24.21.0'],
    workaround: 'addEventListener() on each signal, and removeEventListener() afterwards',
    thread: 'https://github.com/nodejs/node/issues/54614',
    suspects: ['node:internal/abort_controller']
  }),
  defineKnownBug({
    id: 'vm-compile-function',
    package: 'node',
    affected: '>=16.0.0 <21.0.0',
    title: 'vm.compileFunction() with importModuleDynamically is never collected',
    when: 'vm.compileFunction() is called with importModuleDynamically, as Jest does',
    diagnoses: ['js-heap-leak'],
    fixed: ['22.23.3'],
    thread: 'https://github.com/nodejs/node/issues/42080',
    suspects: ['node:vm', 'node:internal/vm']
  }),
  defineKnownBug({
    id: 'fetch-signal',
    package: 'node',
    affected: '>=18.13.0 <18.17.0',
    title: 'fetch() keeps what its AbortSignal belongs to',
    when: 'fetch() is called with a signal',
    diagnoses: ['js-heap-leak'],
    fixed: ['18.17.0'],
    thread: 'https://github.com/nodejs/node/issues/46435',
    suspects: ['node:internal/deps/undici/undici']
  }),
  defineKnownBug({
    id: 'performance-marks',
    package: 'node',
    affected: '>=16.7.0',
    kind: 'trap',
    title: 'marks and measures of performance that nobody clears',
    when: 'performance.mark() or measure() is called again and again',
    diagnoses: ['js-heap-leak'],
    workaround: 'clearMarks() and clearMeasures()',
    thread: 'https://github.com/nodejs/node/issues/42503',
    suspects: ['node:internal/perf/usertiming', 'node:internal/perf/observe']
  }),
  defineKnownBug({
    id: 'promise-race',
    package: 'node',
    affected: '*',
    kind: 'trap',
    title: 'Promise.race() with a promise that never settles',
    when: 'a promise that lives long takes part in many races',
    diagnoses: ['js-heap-leak'],
    workaround: 'an AbortSignal, or a race without the promise that lives long',
    thread: 'https://github.com/nodejs/node/issues/17469',
    suspects: ['race']
  })
])

module.exports = { nodeBugs }

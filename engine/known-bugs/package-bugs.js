'use strict'

const { defineKnownBug } = require('./define-known-bug')

/** Known memory bugs of packages, sorted by package name. */
const packageBugs = Object.freeze([
  defineKnownBug({
    id: 'napi-canvas-pattern',
    package: '@napi-rs/canvas',
    affected: '>=0.1.70 <0.1.96',
    title: '@napi-rs/canvas leaks the bitmap of a pattern',
    when: 'createPattern() is called with an image or a canvas',
    diagnoses: ['native-memory-leak'],
    fixed: ['0.1.96'],
    thread: 'https://github.com/Brooooooklyn/canvas/issues/1055'
  }),
  defineKnownBug({
    id: 'napi-canvas-draw',
    package: '@napi-rs/canvas',
    affected: '>=0.1.95 <1.1.1',
    title: '@napi-rs/canvas leaks each canvas that is drawn onto another',
    when: 'drawImage() is called with a canvas',
    diagnoses: ['native-memory-leak'],
    fixed: ['1.1.1'],
    thread: 'https://github.com/Brooooooklyn/canvas/issues/1222'
  }),
  defineKnownBug({
    id: 'node-rs-crc32',
    package: '@node-rs/crc32',
    affected: '<=1.5.1',
    title: '@node-rs/crc32 keeps a reference to each argument',
    when: 'crc32() or crc32c() is called',
    diagnoses: ['native-memory-leak', 'js-heap-leak'],
    fixed: ['1.10.6'],
    thread: 'https://github.com/napi-rs/node-rs/issues/655'
  }),
  defineKnownBug({
    id: 'otel-two-readers',
    package: '@opentelemetry/sdk-metrics',
    affected: '>=1.17.0 <1.17.1',
    title: 'OpenTelemetry metrics with two readers',
    when: 'a MeterProvider has two readers, and one of them collects less often or never',
    diagnoses: ['js-heap-leak'],
    fixed: ['1.17.1'],
    thread: 'https://github.com/open-telemetry/opentelemetry-js/issues/4115'
  }),
  defineKnownBug({
    id: 'swc-parse',
    package: '@swc/core',
    affected: '>=1.7.14 <1.8.0',
    title: '@swc/core: native memory grows with each file that it parses',
    when: 'parse() is called for many files',
    diagnoses: ['native-memory-leak', 'allocator-fragmentation'],
    fixed: ['1.13.5'],
    thread: 'https://github.com/swc-project/swc/issues/9480'
  }),
  defineKnownBug({
    id: 'ajv-compile',
    package: 'ajv',
    affected: '*',
    kind: 'trap',
    title: 'ajv keeps each schema object that it compiled',
    when: 'a new schema object is made for each validation',
    diagnoses: ['js-heap-leak'],
    workaround: 'compile each schema once, or call removeSchema()',
    thread: 'https://github.com/ajv-validator/ajv/issues/1413'
  }),
  defineKnownBug({
    id: 'arktype-instances',
    package: 'arktype',
    affected: '>=2.0.0 <=2.1.29',
    kind: 'trap',
    title: 'arktype registers each type that is made',
    when: 'a type is made for each request',
    diagnoses: ['js-heap-leak'],
    workaround: 'make each type once, when its module is loaded',
    thread: 'https://github.com/arktypeio/arktype/issues/1584'
  }),
  defineKnownBug({
    id: 'axios-cancel-token',
    package: 'axios',
    affected: '<0.22.0',
    title: 'axios: a cancel token keeps each request that uses it',
    when: 'requests share a long-lived CancelToken',
    diagnoses: ['js-heap-leak'],
    fixed: ['0.22.0'],
    thread: 'https://github.com/axios/axios/issues/3001'
  }),
  defineKnownBug({
    id: 'cls-hooked-promise',
    package: 'cls-hooked',
    affected: '*',
    title: 'cls-hooked keeps a context that holds a promise',
    when: 'a context holds a promise that was made in it',
    diagnoses: ['js-heap-leak', 'context-leak'],
    workaround: 'AsyncLocalStorage of node:async_hooks',
    thread: 'https://github.com/Jeff-Lewis/cls-hooked/issues/66'
  }),
  defineKnownBug({
    id: 'debug',
    package: 'debug',
    affected: '>=3.0.0 <4.3.0',
    title: 'debug keeps each instance it made',
    when: 'debug() is called for each request or object',
    diagnoses: ['js-heap-leak'],
    fixed: ['4.3.0'],
    workaround: 'make each instance once, when its module is loaded',
    thread: 'https://github.com/debug-js/debug/issues/678'
  }),
  defineKnownBug({
    id: 'express-session',
    package: 'express-session',
    affected: '*',
    kind: 'trap',
    title: "express-session's default store keeps each visitor's session",
    when: 'no other store is configured',
    diagnoses: ['js-heap-leak'],
    workaround: 'configure a store, such as memorystore or connect-redis',
    thread: 'https://github.com/expressjs/session/issues/556'
  }),
  defineKnownBug({
    id: 'graceful-fs-reloaded',
    package: 'graceful-fs',
    affected: '<=4.1.11',
    title: 'graceful-fs wraps fs.close again each time it is loaded',
    when: 'its module is loaded again and again, as test runners do',
    diagnoses: ['js-heap-leak'],
    fixed: ['4.2.11'],
    thread: 'https://github.com/isaacs/node-graceful-fs/issues/102'
  }),
  defineKnownBug({
    id: 'hogan-cache',
    package: 'hogan.js',
    affected: '*',
    kind: 'trap',
    title: 'Hogan.js caches each template that it ever compiled',
    when: 'the app renders many different template texts',
    diagnoses: ['js-heap-leak'],
    workaround: 'set Hogan.cache = {} from time to time',
    thread: 'https://github.com/twitter/hogan.js/issues/239'
  }),
  defineKnownBug({
    id: 'http-proxy-aborted',
    package: 'http-proxy',
    affected: '<=1.18.1',
    title: 'http-proxy keeps the request to the backend when its client disconnects',
    when: 'clients disconnect before they get an answer, on Node.js 15.5 or later',
    diagnoses: ['resource-leak'],
    workaround: 'http-proxy-node16, or http-proxy-3',
    thread: 'https://github.com/http-party/node-http-proxy/issues/1559'
  }),
  defineKnownBug({
    id: 'http-server-aborted',
    package: 'http-server',
    affected: '<=14.1.1',
    title: 'http-server keeps the file of an aborted download open',
    when: 'clients abort downloads',
    diagnoses: ['resource-leak'],
    workaround: 'serve-static',
    thread: 'https://github.com/http-party/http-server/issues/512'
  }),
  defineKnownBug({
    id: 'mem-max-age',
    package: 'mem',
    affected: '<4.0.0',
    title: 'mem: expired results are never deleted',
    when: 'maxAge is set, and most arguments differ',
    diagnoses: ['js-heap-leak'],
    fixed: ['4.0.0'],
    thread: 'https://github.com/sindresorhus/memoize/issues/14'
  }),
  defineKnownBug({
    id: 'msgpackr-slices',
    package: 'msgpackr',
    affected: '*',
    kind: 'trap',
    title: 'msgpackr: a small field of a message pins the whole message',
    when: 'the app retains a binary field of messages',
    diagnoses: ['native-memory-leak', 'buffer-pool-pinning'],
    workaround: 'the option copyBuffers: true',
    thread: 'https://github.com/kriszyp/msgpackr#options'
  }),
  defineKnownBug({
    id: 'multer-aborted',
    package: 'multer',
    affected: '<2.3.0',
    title: 'multer keeps the file of an aborted upload open',
    when: 'clients abort uploads to disk storage',
    diagnoses: ['resource-leak'],
    fixed: ['2.3.0'],
    thread: 'https://github.com/expressjs/multer/issues/971'
  }),
  defineKnownBug({
    id: 'mustache-cache',
    package: 'mustache',
    affected: '>=4.0.0 <=4.2.0',
    kind: 'trap',
    title: 'mustache caches each template that it ever rendered',
    when: 'the app renders many different template texts',
    diagnoses: ['js-heap-leak'],
    workaround: 'a Writer with templateCache = undefined, or clearCache()',
    thread: 'https://github.com/janl/mustache.js/issues/818'
  }),
  defineKnownBug({
    id: 'node-fetch-body',
    package: 'node-fetch',
    affected: '<=2.7.0',
    kind: 'trap',
    title: 'a node-fetch body that is never read keeps its socket',
    when: 'the body of an answer is neither read nor drained',
    diagnoses: ['resource-leak', 'native-memory-leak'],
    workaround: 'read each body to its end',
    thread: 'https://github.com/node-fetch/node-fetch/issues/83'
  }),
  defineKnownBug({
    id: 'nodemailer-pool',
    package: 'nodemailer',
    affected: '*',
    kind: 'trap',
    title: 'nodemailer: a pooled transport for each mail keeps its connection',
    when: 'createTransport({ pool: true }) is called for each mail',
    diagnoses: ['resource-leak'],
    workaround: 'one transport for all mails, or close() each',
    thread: 'https://github.com/nodemailer/nodemailer/issues/942'
  }),
  defineKnownBug({
    id: 'pino-transport-per-job',
    package: 'pino',
    affected: '>=7.0.0',
    kind: 'trap',
    title: 'a pino transport for each job starts a worker thread each time',
    when: 'pino.transport() is called for each job or request',
    diagnoses: ['resource-leak'],
    workaround: 'one transport for the process, and child() loggers',
    thread: 'https://github.com/pinojs/pino/issues/1322'
  }),
  defineKnownBug({
    id: 'require-uncached',
    package: 'require-uncached',
    affected: '<1.0.3',
    title: 'require-uncached keeps each module in module.children of its parent',
    when: 'it is called again and again',
    diagnoses: ['js-heap-leak'],
    fixed: ['1.0.3'],
    thread: 'https://github.com/sindresorhus/import-fresh/issues/2'
  }),
  defineKnownBug({
    id: 'serve-handler-304',
    package: 'serve-handler',
    affected: '<=6.1.7',
    title: 'serve-handler keeps the file of each answer with status 304 open',
    when: 'the option etag is on and clients revalidate',
    diagnoses: ['resource-leak'],
    workaround: 'etag: false',
    thread: 'https://github.com/vercel/serve-handler/issues/235'
  }),
  defineKnownBug({
    id: 'sharp-fragmentation',
    package: 'sharp',
    affected: '*',
    kind: 'trap',
    title: 'sharp on glibc: images of many sizes, processed in waves',
    when: 'glibc malloc is the allocator',
    diagnoses: ['allocator-fragmentation'],
    workaround: 'jemalloc by LD_PRELOAD',
    thread: 'https://github.com/lovell/sharp/issues/2607'
  }),
  defineKnownBug({
    id: 'sirv-aborted',
    package: 'sirv',
    affected: '<=3.0.2',
    title: 'sirv keeps the file of a download open when its client disconnects',
    when: 'clients abort downloads',
    diagnoses: ['resource-leak'],
    workaround: 'serve-static',
    thread: 'https://github.com/sveltejs/kit/issues/11617'
  }),
  defineKnownBug({
    id: 'stealthy-require',
    package: 'stealthy-require',
    affected: '<1.1.0',
    title: 'stealthy-require keeps each module in module.children of its parent',
    when: 'it is called again and again',
    diagnoses: ['js-heap-leak'],
    fixed: ['1.1.0'],
    thread: 'https://github.com/analog-nico/stealthy-require/issues/2'
  }),
  defineKnownBug({
    id: 'tiktoken-free',
    package: 'tiktoken',
    affected: '*',
    kind: 'trap',
    title: 'tiktoken: an encoder for each request, never freed',
    when: 'encoders are made without free()',
    diagnoses: ['native-memory-leak'],
    workaround: 'call free(), or make one encoder',
    thread: 'https://github.com/gfargo/coco/issues/1641'
  }),
  defineKnownBug({
    id: 'tree-sitter-trees',
    package: 'web-tree-sitter',
    affected: '*',
    kind: 'trap',
    title: 'web-tree-sitter: trees without delete() stay in WebAssembly memory',
    when: 'trees are parsed without delete()',
    diagnoses: ['native-memory-leak'],
    workaround: 'call delete() of each tree',
    thread: 'https://github.com/yamadashy/repomix/issues/1680'
  }),
  defineKnownBug({
    id: 'winston-per-request',
    package: 'winston',
    affected: '>=3.0.0 <=3.19.0',
    kind: 'trap',
    title: 'a winston logger for each request, on one transport',
    when: 'createLogger() is called for each request with a shared transport',
    diagnoses: ['js-heap-leak'],
    workaround: 'child() of one logger',
    thread: 'https://github.com/winstonjs/winston/issues/1334'
  }),
  defineKnownBug({
    id: 'z-schema-cache',
    package: 'z-schema',
    affected: '<3.18.4',
    title: 'z-schema keeps each schema that it compiled',
    when: 'each validation uses a new schema object',
    diagnoses: ['js-heap-leak'],
    fixed: ['3.18.4'],
    thread: 'https://github.com/zaggino/z-schema/issues/192'
  }),
  defineKnownBug({
    id: 'zod-registry',
    package: 'zod',
    affected: '>=4.0.0 <4.1.8',
    title: "zod's global registry keeps each schema that is described",
    when: 'schemas with describe() or meta() are made for each request',
    diagnoses: ['js-heap-leak'],
    fixed: ['4.1.8'],
    thread: 'https://github.com/mastra-ai/mastra/issues/18469'
  })
])

module.exports = { packageBugs }

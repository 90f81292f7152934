'use strict'

const path = require('node:path')

/**
 * @typedef {object} LabApp
 * @property {string} id also its file's name in apps/
 * @property {string} title
 * @property {string | null} diagnosis id of the expected diagnosis; null: healthy, none expected
 * @property {string} [opportunity] id of the expected opportunity
 * @property {'code' | 'fix' | 'none'} fixedBy source of its fixed form: `--fixed`, the printed fix,
 *   or none
 * @property {string} script absolute path
 * @property {number} memoryLimitBytes limit of its cgroup
 * @property {number} [cpus] CPU quota in cores
 * @property {number} [fromNode] first major version with the problem: earlier ones return the
 *   memory by themselves
 * @property {number} [toNode] last major version with the problem: later ones return the memory by
 *   themselves
 * @property {boolean} [limitOnParent] the parent of its cgroup has the limit
 * @property {string[]} [nodeArgs]
 * @property {{ line?: RegExp, call?: string }} [suspect] defect in its code: the line that
 *   allocates retained objects, or the blocking call
 * @property {number} seconds time until the problem is visible
 * @property {boolean} [isOnlySuspected] in so short a run nothing can be certain: the expected
 *   diagnosis is suspected
 * @property {number} [starvesAtCores] a healthy app starves with a CPU quota of so many cores or
 *   less: --max-semi-space-size=16 was measured to save CPU time there
 * @property {string} about one sentence
 */

const MB = 2 ** 20
const MEMORY_LIMIT_BYTES = 512 * MB
/** A cgroup limit that stands for a large machine. */
const LARGE_LIMIT_BYTES = 8192 * MB

/** @type {ReadonlyArray<LabApp>} problems, each in several variants, then healthy look-alikes */
const apps = [
  app({
    id: 'semi-space-starvation',
    title: 'New space too small for the requests in flight',
    diagnosis: 'semi-space-starvation',
    seconds: 30,
    about:
      'A JSON API in a container of 512 MB, with a semi-space of 1 MB: V8 promotes short-lived ' +
        'rows, and runs many major GCs a second.'
  }),
  app({
    id: 'semi-space-starvation-jobs',
    title: 'New space too small for the jobs in flight',
    diagnosis: 'semi-space-starvation',
    seconds: 30,
    about:
      'A queue worker whose batches wait for lookups: they outlive scavenges and die in the old ' +
        'space.'
  }),
  app({
    id: 'semi-space-starvation-streams',
    title: 'New space too small for the buffers of streams',
    diagnosis: 'semi-space-starvation',
    seconds: 30,
    about:
      'An import whose object streams buffer thousands of rows: each row lives a little longer ' +
        'than the time between two scavenges.'
  }),
  app({
    id: 'js-heap-leak',
    title: 'Session map that only grows',
    diagnosis: 'js-heap-leak',
    fixedBy: 'none',
    suspect: { line: /permissions =|visits =|function login|randomBytes/ },
    seconds: 126,
    about:
      'A session API that adds every login to a map and removes none: the live heap grows by ' +
        'about 120 MB a minute up to the heap size limit.'
  }),
  app({
    id: 'js-heap-leak-jobs',
    title: 'List of results that is never trimmed',
    diagnosis: 'js-heap-leak',
    fixedBy: 'code',
    suspect: { line: /steps =|function work|results\.push/ },
    seconds: 104,
    about: 'A job runner that keeps every result for a dashboard.'
  }),
  app({
    id: 'js-heap-leak-streams',
    title: 'Listeners that are never removed',
    diagnosis: 'js-heap-leak',
    fixedBy: 'code',
    suspect: { line: /history =|function subscribe|onPrice/ },
    seconds: 130,
    about:
      'A ticker whose subscribers leave their listener on the shared feed, with all objects of ' +
        'its closure.'
  }),
  app({
    id: 'js-heap-leak-worker',
    title: 'Worker thread whose map only grows',
    diagnosis: 'js-heap-leak',
    fixedBy: 'code',
    suspect: { line: /histogram =|seen\.set|parentPort/ },
    seconds: 90,
    about:
      'A thumbnail service whose worker keeps a histogram of every picture: the heap of the ' +
        'worker grows, not that of the main thread.'
  }),
  app({
    id: 'native-memory-leak',
    title: 'Compression streams that are never closed',
    diagnosis: 'native-memory-leak',
    fixedBy: 'code',
    seconds: 95,
    about:
      'A download service that does not close the gzip stream when the client disconnects: ' +
        'memory of zlib grows, heap and Buffers do not.'
  }),
  app({
    id: 'native-memory-leak-jobs',
    title: 'WebAssembly memories that are kept',
    diagnosis: 'native-memory-leak',
    fixedBy: 'code',
    seconds: 105,
    about: 'A job runner that gives each plugin a WebAssembly memory of its own and keeps them all.'
  }),
  app({
    id: 'native-memory-leak-streams',
    title: 'Queue of Buffers without backpressure',
    diagnosis: 'native-memory-leak',
    fixedBy: 'code',
    seconds: 126,
    about:
      'A relay that reads faster than it writes and queues the chunks: Buffers grow without end.'
  }),
  app({
    id: 'allocator-fragmentation',
    title: 'Freed memory the allocator keeps',
    diagnosis: 'allocator-fragmentation',
    seconds: 60,
    about:
      'A document worker that allocates and frees batches of Buffers of mixed sizes: glibc keeps ' +
        'the free memory, and RSS stays far above the memory in use.'
  }),
  app({
    id: 'allocator-fragmentation-http',
    title: 'Image proxy whose freed memory malloc keeps',
    diagnosis: 'allocator-fragmentation',
    seconds: 60,
    about:
      'An image proxy that works in the thread pool: pictures of many sizes are freed, glibc ' +
        'keeps their memory.'
  }),
  app({
    id: 'allocator-fragmentation-streams',
    title: 'Archiver between its rounds',
    diagnosis: 'allocator-fragmentation',
    seconds: 60,
    about:
      'A log archiver that gzips hundreds of files at once, in rounds: between the rounds RSS ' +
        'stays high, although no memory is in use.'
  }),
  app({
    id: 'array-buffer-pile-up',
    title: 'Uploads gathered with Buffer.concat',
    diagnosis: 'array-buffer-pile-up',
    fixedBy: 'code',
    seconds: 45,
    about:
      'Uploads of ten megabytes that become garbage at once, and wait for a late GC.'
  }),
  app({
    id: 'array-buffer-pile-up-jobs',
    title: 'Video frames that wait for a GC',
    diagnosis: 'array-buffer-pile-up',
    fixedBy: 'code',
    seconds: 45,
    about: 'A video indexer that takes a Buffer of 50 MB for each frame and drops it.'
  }),
  app({
    id: 'array-buffer-pile-up-streams',
    title: 'Blocks of a backup that wait for a GC',
    diagnosis: 'array-buffer-pile-up',
    fixedBy: 'code',
    seconds: 45,
    about:
      'A backup that reads blocks of eight megabytes, each a new Buffer that outlives two ' +
        'scavenges.'
  }),
  app({
    id: 'array-buffer-pile-up-transfer',
    title: 'Scans that wait for a GC in a small container',
    diagnosis: 'array-buffer-pile-up',
    fixedBy: 'code',
    memoryLimitBytes: 300 * MB,
    seconds: 45,
    about:
      'A service that signs scans of 50 MB, each in a new Buffer: new scans arrive before V8 ' +
        'frees the last Buffers.'
  }),
  app({
    id: 'buffer-pool-pinning',
    title: 'Request ids that pin whole messages',
    diagnosis: 'buffer-pool-pinning',
    fixedBy: 'code',
    seconds: 65,
    about: 'A gateway that remembers ids of sixteen bytes, each a slice of a pool slab.'
  }),
  app({
    id: 'buffer-pool-pinning-jobs',
    title: 'Keys that pin whole records',
    diagnosis: 'buffer-pool-pinning',
    fixedBy: 'code',
    seconds: 65,
    about: 'A deduplicator that keeps the key of each record as a slice of it.'
  }),
  app({
    id: 'buffer-pool-pinning-streams',
    title: 'Session tokens that pin whole frames',
    diagnosis: 'buffer-pool-pinning',
    fixedBy: 'code',
    seconds: 65,
    about: 'A protocol parser that keeps a token of each frame until its session ends.'
  }),
  app({
    id: 'heap-limit-thrash',
    title: 'Catalogue that outgrew the heap',
    diagnosis: 'heap-limit-thrash',
    seconds: 30,
    about:
      'A shop whose catalogue fills 87 % of the heap size limit: each request waits for GCs.'
  }),
  app({
    id: 'heap-limit-thrash-jobs',
    title: 'Reference list that fills the heap',
    diagnosis: 'heap-limit-thrash',
    seconds: 30,
    about: 'A matcher whose live data fill 87 % of the heap size limit: it compares each job ' +
      'with them.'
  }),
  app({
    id: 'heap-limit-thrash-worker',
    title: 'Worker with too small a heap of its own',
    diagnosis: 'heap-limit-thrash',
    fixedBy: 'code',
    seconds: 30,
    about:
      'A worker thread whose resourceLimits are hardly larger than its live heap: the worker ' +
        'runs GCs all the time, while the main thread is idle.'
  }),
  app({
    id: 'container-limit-mismatch',
    title: 'Heap limit from another machine',
    diagnosis: 'container-limit-mismatch',
    nodeArgs: ['--max-old-space-size=1024'],
    seconds: 30,
    about: 'A JSON API with --max-old-space-size=1024 in a container of 512 MB.'
  }),
  app({
    id: 'container-limit-mismatch-jobs',
    title: "V8's own limit in a small container",
    diagnosis: 'container-limit-mismatch',
    memoryLimitBytes: 256 * MB,
    seconds: 30,
    about: 'An indexer in a container of 256 MB, where V8 takes 256 MB for the heap alone.'
  }),
  app({
    id: 'container-limit-mismatch-group',
    title: 'A limit that Node.js cannot see',
    diagnosis: 'container-limit-mismatch',
    limitOnParent: true,
    seconds: 30,
    about:
      'A stream processor whose limit is on the parent of its cgroup: V8 sizes the heap for the ' +
        'whole machine.'
  }),
  app({
    id: 'oversized-heap',
    title: 'Limits set too high to be safe',
    diagnosis: 'oversized-heap',
    memoryLimitBytes: LARGE_LIMIT_BYTES,
    nodeArgs: ['--max-semi-space-size=128', '--max-old-space-size=3000'],
    seconds: 70,
    about: 'A small API with semi-spaces of up to 128 MB: garbage fills a quarter of a gigabyte.'
  }),
  app({
    id: 'oversized-heap-jobs',
    title: 'Report worker with a heap for a hundred reports',
    diagnosis: 'oversized-heap',
    memoryLimitBytes: LARGE_LIMIT_BYTES,
    nodeArgs: ['--max-semi-space-size=96', '--max-old-space-size=4096'],
    seconds: 70,
    about:
      'A report worker that keeps some megabytes; hundreds of megabytes of garbage wait for rare ' +
        'GCs.'
  }),
  app({
    id: 'oversized-heap-streams',
    title: 'Importer with a new space for ten importers',
    diagnosis: 'oversized-heap',
    memoryLimitBytes: LARGE_LIMIT_BYTES,
    nodeArgs: [
      '--max-semi-space-size=128',
      '--min-semi-space-size=128',
      '--max-old-space-size=4096'
    ],
    seconds: 70,
    about:
      'A CSV importer with semi-spaces of up to 128 MB: short-lived rows wait for the next ' +
        'scavenge.'
  }),
  app({
    id: 'resource-leak',
    title: 'Sockets that are never ended',
    diagnosis: 'resource-leak',
    fixedBy: 'code',
    seconds: 80,
    about: 'An API that opens a connection to its backend for each tenth request and never ' +
      'closes it.'
  }),
  app({
    id: 'resource-leak-jobs',
    title: 'Timers that are never cleared',
    diagnosis: 'resource-leak',
    fixedBy: 'code',
    seconds: 65,
    // Timers may be timeouts that have not ended yet.
    isOnlySuspected: true,
    about: 'A scheduler that starts a progress timer for each job.'
  }),
  app({
    id: 'resource-leak-streams',
    title: 'Files that are never closed',
    diagnosis: 'resource-leak',
    fixedBy: 'code',
    seconds: 65,
    about: 'A file server whose code for small ranges does not close its files.'
  }),
  app({
    id: 'context-leak',
    title: 'A context for each request, never dropped',
    diagnosis: 'context-leak',
    fixedBy: 'code',
    seconds: 55,
    about: 'A rule engine that keeps a function of each new vm context.'
  }),
  app({
    id: 'context-leak-jobs',
    title: 'A sandbox for each template version',
    diagnosis: 'context-leak',
    fixedBy: 'code',
    seconds: 55,
    about: 'A template renderer that caches sandboxes without a limit.'
  }),
  app({
    id: 'context-leak-streams',
    title: 'Errors that keep their context',
    diagnosis: 'context-leak',
    fixedBy: 'code',
    seconds: 55,
    about:
      'A log pipeline that keeps the errors of scripts, each with its whole context.'
  }),
  app({
    id: 'event-loop-blocked',
    title: 'Passwords hashed on the event loop',
    diagnosis: 'event-loop-blocked',
    fixedBy: 'code',
    suspect: { call: 'pbkdf2Sync' },
    seconds: 35,
    about: 'A login service that derives keys with pbkdf2Sync.'
  }),
  app({
    id: 'event-loop-blocked-jobs',
    title: 'A command that blocks the event loop',
    diagnosis: 'event-loop-blocked',
    fixedBy: 'code',
    suspect: { call: 'execFileSync' },
    seconds: 35,
    about:
      'A deploy bot that runs a command with execFileSync once a second: the event loop waits ' +
        'and uses no CPU.'
  }),
  app({
    id: 'event-loop-blocked-streams',
    title: 'A regular expression that backtracks',
    diagnosis: 'event-loop-blocked',
    fixedBy: 'code',
    suspect: { call: 'a regular expression' },
    seconds: 35,
    about: 'A validator whose regular expression backtracks on some lines.'
  }),
  app({
    id: 'cpu-throttling',
    title: 'Waves of requests with half a core',
    diagnosis: 'cpu-throttling',
    cpus: 0.5,
    seconds: 45,
    about:
      'A product page whose items are requested in waves: each wave uses up the CPU quota of its ' +
        'periods, and the rest of it waits.'
  }),
  app({
    id: 'idle-heap-not-returned',
    title: 'API after a burst',
    diagnosis: 'idle-heap-not-returned',
    memoryLimitBytes: 384 * MB,
    fromNode: 24,
    toNode: 25,
    nodeArgs: ['--max-semi-space-size=64', '--min-semi-space-size=64', '--max-old-space-size=128'],
    seconds: 110,
    about:
      'An API with heavy load after its start and hardly any load later: the new space keeps its ' +
        'largest size.'
  }),
  app({
    id: 'idle-heap-not-returned-jobs',
    title: 'Worker after its import',
    diagnosis: 'idle-heap-not-returned',
    memoryLimitBytes: 384 * MB,
    fromNode: 24,
    toNode: 25,
    nodeArgs: ['--max-semi-space-size=64', '--min-semi-space-size=64', '--max-old-space-size=128'],
    seconds: 110,
    about: 'A worker that has one large import and then waits for work.'
  }),
  app({
    id: 'idle-heap-not-returned-streams',
    title: 'Mirror after its first copy',
    diagnosis: 'idle-heap-not-returned',
    memoryLimitBytes: 384 * MB,
    fromNode: 24,
    toNode: 25,
    nodeArgs: ['--max-semi-space-size=64', '--min-semi-space-size=64', '--max-old-space-size=128'],
    seconds: 110,
    about: 'A mirror that copies everything once and then waits for rare changes.'
  }),
  app({
    id: 'pointer-compression-candidate',
    title: 'Road graph of small objects',
    diagnosis: null,
    opportunity: 'pointer-compression-candidate',
    nodeArgs: ['--max-old-space-size=380'],
    seconds: 35,
    about:
      'A routing service with a stable graph of small objects in memory: no problem, but ' +
        'pointers of four bytes would save much memory.'
  }),
  app({
    id: 'pointer-compression-candidate-jobs',
    title: 'Plan of linked tasks',
    diagnosis: null,
    opportunity: 'pointer-compression-candidate',
    nodeArgs: ['--max-old-space-size=380'],
    seconds: 35,
    about:
      'A scheduler with its plan in memory: small tasks with references to their neighbours, ' +
        'owners and tags.'
  }),
  app({
    id: 'pointer-compression-candidate-streams',
    title: 'Dictionary of relations',
    diagnosis: null,
    opportunity: 'pointer-compression-candidate',
    nodeArgs: ['--max-old-space-size=380'],
    seconds: 35,
    about: 'An enricher whose records stream past a dictionary of linked objects.'
  }),
  app({
    id: 'healthy-steady',
    title: 'Steady JSON API',
    diagnosis: null,
    seconds: 40,
    starvesAtCores: 0.1,
    about: 'A small JSON API under steady load: the heap is a sawtooth above a constant floor.'
  }),
  app({
    id: 'healthy-cache-fill',
    title: 'Cache that fills, then stays full',
    diagnosis: null,
    seconds: 75,
    about:
      'A bounded cache: the live heap grows like a leak for about 40 s; after that each new ' +
        'entry replaces the oldest one.'
  }),
  app({
    id: 'healthy-bursts',
    title: 'Quiet API with bursts',
    diagnosis: null,
    seconds: 60,
    about:
      'Three seconds of heavy load every fifteen: GCs and event loop utilisation rise and fall.'
  }),
  app({
    id: 'healthy-batch-job',
    title: 'Batch worker',
    diagnosis: null,
    seconds: 60,
    starvesAtCores: 0.25,
    about:
      'The app loads, handles and drops a batch every fifteen seconds: the live heap returns to ' +
      'the same floor.'
  }),
  app({
    id: 'healthy-warm-up',
    title: 'Templates compiled on first visit',
    diagnosis: null,
    seconds: 60,
    about: 'Heap and RSS grow with each new template, then ever more slowly, until they stop.'
  }),
  app({
    id: 'healthy-large-heap',
    title: 'Large stable index in memory',
    diagnosis: null,
    seconds: 60,
    about: 'About 180 MB of live heap below a limit of 259 MB, loaded once and constant.'
  }),
  app({
    id: 'healthy-native-gap',
    title: 'Native memory that is in use',
    diagnosis: null,
    seconds: 60,
    about:
      'One compression stream for each connection: about 150 MB outside V8, constant and all of ' +
        'it in use.'
  }),
  app({
    id: 'healthy-idle',
    title: 'Idle server',
    diagnosis: null,
    seconds: 60,
    about: 'One health check every ten seconds: hardly any GC, and no problem.'
  }),
  app({
    id: 'healthy-ttl-cache',
    title: 'Cache with expiry under waves of load',
    diagnosis: null,
    seconds: 90,
    about: 'Entries live for twelve seconds and load comes in waves: the live heap rises and falls.'
  }),
  app({
    id: 'healthy-ramp',
    title: 'Load that grows, then stays',
    diagnosis: null,
    seconds: 75,
    starvesAtCores: 0.1,
    about:
      'Load ramps up for 40 s: the live heap grows with the requests held open, and stops with ' +
        'them.'
  }),
  app({
    id: 'healthy-chat-rooms',
    title: 'Chat with many members',
    diagnosis: null,
    seconds: 60,
    about: 'Four hundred sockets that open within seconds and stay open.'
  }),
  app({
    id: 'healthy-tenant-scripts',
    title: 'Scripts in contexts that are dropped',
    diagnosis: null,
    seconds: 60,
    about: 'A new vm context for each script, dropped after use.'
  }),
  app({
    id: 'healthy-thumbnail-cache',
    title: 'Bounded cache of small Buffers',
    diagnosis: null,
    seconds: 75,
    about: 'Thumbnails that fill the slabs of the Buffer pool: all slabs are in use.'
  }),
  app({
    id: 'healthy-frame-ring',
    title: 'Ring of reused Buffers',
    diagnosis: null,
    seconds: 60,
    about: 'Eighty Buffers of a megabyte, created once: external memory is high and constant.'
  }),
  app({
    id: 'healthy-wasm-filter',
    title: 'One large WebAssembly memory',
    diagnosis: null,
    seconds: 60,
    about: '120 MB that are neither heap nor Buffers, created once.'
  }),
  app({
    id: 'healthy-full-container',
    title: 'Container that is nearly full, and stable',
    diagnosis: null,
    seconds: 75,
    about:
      'Buffers and an index that were loaded at the start: RSS is near the limit, and constant.'
  }),
  app({
    id: 'healthy-large-limit',
    title: 'Small API under a high heap limit',
    diagnosis: null,
    memoryLimitBytes: LARGE_LIMIT_BYTES,
    nodeArgs: ['--max-old-space-size=2048'],
    seconds: 90,
    about: 'No major GC for minutes: used heap and RSS rise slowly, but only with garbage.'
  }),
  app({
    id: 'healthy-connection-pool',
    title: 'Pool of connections that reaches its cap',
    diagnosis: null,
    seconds: 75,
    about: 'The number of keep-alive connections grows to ninety and stays there.'
  }),
  app({
    id: 'healthy-download-streams',
    title: 'Compressed downloads that end',
    diagnosis: null,
    seconds: 60,
    starvesAtCores: 0.1,
    about: 'Memory of zlib rises and falls with the number of clients.'
  }),
  app({
    id: 'healthy-cpu-slices',
    title: 'Busy loop that answers',
    diagnosis: null,
    seconds: 60,
    about: 'More than half of the time is computation, in slices of fifteen milliseconds.'
  }),
  app({
    id: 'healthy-deadlines',
    title: 'Thousands of timers, and no more',
    diagnosis: null,
    seconds: 60,
    about: 'Deadlines are set and cleared all the time.'
  }),
  app({
    id: 'healthy-large-strings',
    title: 'Reports that are built and dropped',
    diagnosis: null,
    seconds: 75,
    about: 'Every twenty seconds the app builds thirty megabytes of rows, and drops them after ' +
      'sending.'
  }),
  app({
    id: 'healthy-uploads',
    title: 'Uploads freed at once',
    diagnosis: null,
    seconds: 60,
    about: 'The app uses a dozen Buffers of two megabytes a second, and keeps none.'
  })
]

/**
 * @param {Omit<LabApp, 'script' | 'memoryLimitBytes' | 'fixedBy'> & Partial<Pick<LabApp,
 *   'memoryLimitBytes' | 'fixedBy'>>} row
 * @returns {LabApp}
 */
function app (row) {
  return {
    memoryLimitBytes: MEMORY_LIMIT_BYTES,
    fixedBy: row.diagnosis === null ? 'none' : 'fix',
    ...row,
    script: path.join(__dirname, 'apps', `${row.id}.js`)
  }
}

/**
 * @param {string} id
 * @returns {LabApp | undefined}
 */
function findApp (id) {
  return apps.find((app) => app.id === id)
}

module.exports = { apps, findApp }

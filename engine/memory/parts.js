'use strict'

/**
 * Parts of RSS, in the order of a waterfall chart. Each is a label value of memwatch_memory_bytes;
 * their sum is RSS.
 * @type {Readonly<Record<string, { title: string, help: string }>>}
 */
const parts = Object.freeze({
  heap_live: {
    title: 'V8 heap, live',
    help: 'survived the last major GC; before the first one, all used memory of the old spaces'
  },
  heap_garbage: {
    title: 'V8 heap, garbage',
    help: 'used in the old spaces, and not live'
  },
  heap_slack: { title: 'V8 heap, free', help: 'resident in the old spaces, and not used' },
  new_space: { title: 'V8 new space', help: 'both semi-spaces' },
  worker_heaps: {
    title: 'V8 heaps of workers',
    help: 'resident heaps of the worker threads that report'
  },
  silent_worker_heaps: {
    title: 'V8 heaps of silent workers',
    help: 'heaps of workers that do not report, for example because they wait in Atomics.wait'
  },
  heap_pooled: {
    title: 'V8 pages kept for reuse',
    help: 'emptied by GCs, still resident, not in V8\'s statistics; Node.js 22 and newer keep some'
  },
  external: {
    title: 'Buffers, external',
    help: 'ArrayBuffers and other memory outside the heap that V8 objects own'
  },
  webassembly: { title: 'WebAssembly', help: 'memory of WebAssembly' },
  allocator_in_use: {
    title: 'malloc, in use',
    help: 'native memory of Node.js and of addons; only if malloc\'s statistics were read'
  },
  allocator_retained: {
    title: 'malloc, retained',
    help: 'freed by the app, not returned to the system; only if malloc\'s statistics were read'
  },
  allocator_unasked: {
    title: 'malloc, in use or retained',
    help: 'memory of malloc while its statistics were not read, or since they were last read'
  },
  addon_malloc: {
    title: 'malloc of an addon',
    help: 'memory of the mimalloc in an addon, in use or retained'
  },
  stacks: { title: 'Stacks', help: 'stacks of all threads' },
  files: { title: 'Code, libraries, files', help: 'file mappings and shared memory' },
  unexplained: { title: 'Unexplained', help: 'resident memory of no other part' }
})

/**
 * @typedef {'heap_live' | 'heap_garbage' | 'heap_slack' | 'new_space' | 'worker_heaps' |
 *   'silent_worker_heaps' | 'heap_pooled' | 'external' | 'webassembly' | 'allocator_in_use' |
 *   'allocator_retained' | 'allocator_unasked' | 'addon_malloc' | 'stacks' | 'files' |
 *   'unexplained'} PartName
 */

/**
 * Memory of Node itself (mallocs, stacks) in a small app: measured 6 to 15 MiB on Node 18 to 26.
 */
const NATIVE_BASE_BYTES = 12 * 2 ** 20
/**
 * Memory of Node itself that lies in malloc's arenas: measured 2.4–5.3 MiB on Node 20, 22 and 24.
 * This value is used if the memory map shows the arenas separately.
 */
const NODE_MALLOC_BYTES = 4 * 2 ** 20

module.exports = { NATIVE_BASE_BYTES, NODE_MALLOC_BYTES, parts }

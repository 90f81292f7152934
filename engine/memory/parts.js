'use strict'

/**
 * Parts of RSS, in the order of a waterfall chart. Each is a label value of memwatch_memory_bytes;
 * their sum is RSS.
 * @type {Readonly<Record<string, { title: string, help: string }>>}
 */
const parts = Object.freeze({
  heap_live: {
    title: 'V8 heap, live',
    help: 'what survived the last major GC; before the first one all that the old spaces use'
  },
  heap_garbage: {
    title: 'V8 heap, garbage',
    help: 'used in the old spaces since that GC, or dead'
  },
  heap_slack: { title: 'V8 heap, free', help: 'resident in the old spaces and not used' },
  new_space: { title: 'V8 new space', help: 'both semi-spaces' },
  worker_heaps: {
    title: 'V8 heaps of workers',
    help: 'resident heaps of the worker threads that report'
  },
  silent_worker_heaps: {
    title: 'V8 heaps of silent workers',
    help: 'of worker threads that did not report, as those that wait in Atomics.wait'
  },
  heap_pooled: {
    title: 'V8 pages kept for reuse',
    help: 'emptied by GCs, resident still, and not counted by V8: Node.js 22 and newer keep some'
  },
  external: {
    title: 'Buffers, external',
    help: 'ArrayBuffers and other memory that V8 objects keep'
  },
  webassembly: { title: 'WebAssembly', help: 'WebAssembly memories' },
  allocator_in_use: {
    title: 'malloc, in use',
    help: 'native memory that is neither: of Node, of addons; where malloc was asked'
  },
  allocator_retained: {
    title: 'malloc, retained',
    help: 'freed by the app and not given back to the system; where malloc was asked'
  },
  allocator_unasked: {
    title: 'malloc, in use or retained',
    help: 'both of these, where malloc was not asked, or took since'
  },
  addon_malloc: {
    title: 'malloc of an addon',
    help: 'mimalloc, which an addon brings with it: in use or retained'
  },
  stacks: { title: 'Stacks', help: 'of all threads' },
  files: { title: 'Code, libraries, files', help: 'file mappings and shared memory' },
  unexplained: { title: 'Unexplained', help: 'resident, and none of the above' }
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
 * It is used if the memory map shows the arenas separately.
 */
const NODE_MALLOC_BYTES = 4 * 2 ** 20

module.exports = { NATIVE_BASE_BYTES, NODE_MALLOC_BYTES, parts }

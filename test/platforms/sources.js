'use strict'

/**
 * Facts about a process, with the parts of a hello and its frames that show them.
 * @type {Readonly<Record<string, (told: Told) => boolean>>}
 *
 * @typedef {{ hello: any, values: any, fields: Set<string> }} Told values: newest value of each
 *   field over all frames; fields: names of the fields
 */
const SOURCES = Object.freeze({
  'V8 heap, GCs, live heap': ({ fields }) =>
    fields.has('heapUsedBytes') && fields.has('liveHeapBytes'),
  'GCs counted in V8’s own callbacks': ({ hello }) => hello.gcCounter === 'hooks',
  'event loop, handles, CPU': ({ fields }) =>
    fields.has('eventLoopDelay') && fields.has('resources') && fields.has('cpuUserSeconds'),
  'bytes of Buffers': ({ fields }) => fields.has('arrayBuffersBytes'),
  RSS: ({ fields }) => fields.has('rssBytes'),
  'parts of RSS (memory map)': ({ fields }) => fields.has('residentBytes'),
  'open file descriptors': ({ fields }) => fields.has('openFileDescriptors'),
  'names of libc and allocator': ({ hello }) => hello.allocator !== 'unknown',
  "malloc's own statistics": ({ fields }) => fields.has('allocatorBytes'),
  'container: use, limit hits, OOM kills': ({ fields }) =>
    fields.has('containerUsageBytes') && fields.has('containerOomKills'),
  'container: pressure (PSI) and memory.high hits (cgroup v2 only)': ({ fields }) =>
    fields.has('memoryPressureSomeSeconds') && fields.has('containerHighHits')
})

module.exports = { SOURCES }

'use strict'

const path = require('node:path')

/**
 * @typedef {object} LabApp
 * @property {string} id also its file's name in apps/
 * @property {string} title
 * @property {string | null} diagnosis id of the diagnosis it must get; null: healthy, it must get none
 * @property {string} script absolute path
 * @property {number} memoryLimitBytes the memory group it is meant to run in
 * @property {string[]} [nodeArgs]
 * @property {number} seconds how long until what it shows can be seen
 * @property {string} about one sentence
 */

const MEMORY_LIMIT_BYTES = 512 * 2 ** 20

/** @type {ReadonlyArray<LabApp>} problems first, then the healthy look-alikes */
const apps = [
  app({
    id: 'semi-space-starvation',
    title: 'New space too small for the requests in flight',
    diagnosis: 'semi-space-starvation',
    seconds: 40,
    about: 'A JSON API whose rows outlive scavenges at the 1 MB semi-space of a 512 MB container: they are promoted just before they die, and majors follow many a second.'
  }),
  app({
    id: 'js-heap-leak',
    title: 'Session map that never forgets',
    diagnosis: 'js-heap-leak',
    seconds: 120,
    about: 'A session API that adds every login to a map and removes none: the live heap grows by about 90 MB a minute up to the heap size limit.'
  }),
  app({
    id: 'allocator-fragmentation',
    title: 'Freed memory the allocator keeps',
    diagnosis: 'allocator-fragmentation',
    seconds: 90,
    about: 'A document worker whose batches of mixed-size Buffers come and go: glibc keeps the holes, and RSS stays far above what is in use.'
  }),
  app({
    id: 'healthy-steady',
    title: 'Steady JSON API',
    diagnosis: null,
    seconds: 40,
    about: 'A small JSON API under steady load: the heap draws a saw around a constant floor.'
  }),
  app({
    id: 'healthy-cache-fill',
    title: 'Cache that fills, then stays full',
    diagnosis: null,
    seconds: 75,
    about: 'A bounded cache: the live heap climbs like a leak for about 40 s, then the oldest entry leaves for each new one.'
  }),
  app({
    id: 'healthy-bursts',
    title: 'Quiet API with bursts',
    diagnosis: null,
    seconds: 60,
    about: 'Three seconds of heavy load every fifteen: collections and event loop utilisation jump and fall back.'
  }),
  app({
    id: 'healthy-batch-job',
    title: 'Batch worker',
    diagnosis: null,
    seconds: 60,
    about: 'Loads a batch, works through it, drops it, every fifteen seconds: the live heap returns to the same floor.'
  }),
  app({
    id: 'healthy-warm-up',
    title: 'Templates compiled on first visit',
    diagnosis: null,
    seconds: 60,
    about: 'Heap and RSS grow while templates are met for the first time, ever slower, then stay.'
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
    about: 'One compression stream for each connection: about 150 MB outside V8, constant and all of it in use.'
  }),
  app({
    id: 'healthy-idle',
    title: 'Idle server',
    diagnosis: null,
    seconds: 60,
    about: 'One health check every ten seconds: hardly a collection, and nothing wrong.'
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
    about: 'Load ramps up for 40 s: the live heap grows with the requests held open, and stops with them.'
  }),
  app({
    id: 'healthy-uploads',
    title: 'Uploads freed at once',
    diagnosis: null,
    seconds: 60,
    about: 'Two-megabyte Buffers come and go by the dozen a second; none is kept.'
  })
]

/**
 * @param {Omit<LabApp, 'script' | 'memoryLimitBytes'>} row
 * @returns {LabApp}
 */
function app (row) {
  return { ...row, script: path.join(__dirname, 'apps', `${row.id}.js`), memoryLimitBytes: MEMORY_LIMIT_BYTES }
}

/**
 * @param {string} id
 * @returns {LabApp | undefined}
 */
function findApp (id) {
  return apps.find((app) => app.id === id)
}

module.exports = { apps, findApp }

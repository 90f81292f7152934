'use strict'

/**
 * Kinds of captures of an isolate. The agent's side of each is in its capture/ folder.
 *
 * @typedef {object} CaptureKind
 * @property {string} title what it shows, in a few words
 * @property {number} seconds that it takes unless said otherwise; 0: it is taken at once
 * @property {number} mostSeconds
 * @property {string} extension of its file, as DevTools and other tools know it
 * @property {string} mediaType
 * @property {string} help what it costs, and what to open it with
 */

const kinds = Object.freeze({
  cpu_profile: {
    title: 'where the time of the thread goes',
    seconds: 5,
    mostSeconds: 60,
    extension: 'cpuprofile',
    mediaType: 'application/json',
    help: 'a sample a millisecond; opens in Chrome DevTools, VS Code and speedscope'
  },
  heap_profile: {
    title: 'where memory is allocated that lives on',
    seconds: 30,
    mostSeconds: 300,
    extension: 'heapprofile',
    mediaType: 'application/json',
    help: 'samples an allocation each 128 KiB; each 512 KiB where the exporter takes it by ' +
      'itself in production, closer for a leak outside the heap; read twice, each time after a ' +
      'full GC, so that growth shows; opens in Chrome DevTools and speedscope'
  },
  allocation_profile: {
    title: 'where memory is allocated, whether it lives on or not',
    seconds: 10,
    mostSeconds: 60,
    extension: 'heapprofile',
    mediaType: 'application/json',
    help: 'as heap_profile, with what GCs took; opens in Chrome DevTools and speedscope'
  },
  gc_trace: {
    title: 'every GC, and what it took of which space',
    seconds: 5,
    mostSeconds: 10,
    extension: 'gctrace.json',
    mediaType: 'application/json',
    help: 'by v8.GCProfiler; ends early after 3,000 GCs'
  },
  report: {
    title: "Node's diagnostic report",
    seconds: 0,
    mostSeconds: 0,
    extension: 'report.json',
    mediaType: 'application/json',
    help: 'stacks, handles, limits, loaded objects; without the environment'
  },
  heap_snapshot: {
    title: 'every object and what holds it',
    seconds: 0,
    mostSeconds: 0,
    extension: 'heapsnapshot',
    mediaType: 'application/json',
    help: 'stops the app for seconds and takes up to 22 times the heap meanwhile; holds all ' +
      'strings, secrets too: the app must allow it (MEMWATCH_ALLOW_SNAPSHOT=1); opens in Chrome ' +
        'DevTools and memlab'
  }
})

/** @typedef {keyof typeof kinds} KindName */

module.exports = { kinds: /** @type {Readonly<Record<KindName, CaptureKind>>} */ (kinds) }

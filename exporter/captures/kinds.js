'use strict'

/**
 * Kinds of captures of an isolate. The agent's code for each kind is in agent/capture/.
 *
 * @typedef {object} CaptureKind
 * @property {string} title short description of its content
 * @property {number} seconds default duration; 0 for a kind without a duration
 * @property {number} mostSeconds
 * @property {string} extension extension of its file that DevTools and other tools expect
 * @property {string} mediaType
 * @property {string} help description of its cost, and of the programs that open it
 */

const kinds = Object.freeze({
  cpu_profile: {
    title: 'CPU time of the thread, by function',
    seconds: 5,
    mostSeconds: 60,
    extension: 'cpuprofile',
    mediaType: 'application/json',
    help:
      'one sample a millisecond (automatic captures that seek rare calls: four); ends early if ' +
      'the profile takes much memory; opens in Chrome DevTools, VS Code and speedscope'
  },
  heap_profile: {
    title: 'allocations that survive GCs, by function',
    seconds: 30,
    mostSeconds: 300,
    extension: 'heapprofile',
    mediaType: 'application/json',
    help: 'samples one allocation in 128 KiB (automatic captures: one in 1 to 512 KiB, by the ' +
      'allocation rate); compares two readings, each after a full GC, to show growth; ends early ' +
      'if the app allocates much; opens in Chrome DevTools and speedscope'
  },
  allocation_profile: {
    title: 'all allocations, by function, also short-lived ones',
    seconds: 10,
    mostSeconds: 60,
    extension: 'heapprofile',
    mediaType: 'application/json',
    help: 'like heap_profile, with collected objects; opens in Chrome DevTools and speedscope'
  },
  gc_trace: {
    title: 'every GC, with the bytes freed in each space',
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
    title: 'every object and its retainers',
    seconds: 0,
    mostSeconds: 0,
    extension: 'heapsnapshot',
    mediaType: 'application/json',
    help: 'stops the app for seconds and needs up to 22 times the heap; contains all strings, ' +
      'also secrets, so the app must allow it (MEMWATCH_ALLOW_SNAPSHOT=1); opens in Chrome ' +
      'DevTools and memlab; memwatch retainers names the objects that pile up'
  }
})

/** @typedef {keyof typeof kinds} KindName */

module.exports = { kinds: /** @type {Readonly<Record<KindName, CaptureKind>>} */ (kinds) }

'use strict'

const { originOf } = require('@memwatch/engine/text/code-owner')

/**
 * Built-in rules of the captures that the exporter starts by itself. Rules of an operator have the
 * same form and are read by read-rules.js.
 *
 * @typedef {object} CaptureRule
 * @property {string} name
 * @property {When} when
 * @property {import('./kinds').KindName} what
 * @property {number} everySeconds least time between two captures of one target by this rule; for a
 *   rule about deaths, between two captures of one name
 * @property {number} [seconds] longest duration. A heap profile ends earlier when it has enough
 *   samples. Default: from plan-capture.js and the kind
 * @property {(known: Sites) => boolean} [isNeeded] false omits the capture; called with the
 *   suspects that the diagnosis has when the capture would begin
 * @property {'inner' | 'handlers' | 'opens'} [names] for a CPU profile: functions inside the first
 *   suspect, handlers of data that Node.js reads, or calls that open files; by default what its
 *   diagnosis asks for, such as calls of native code
 * @property {boolean} [isSecond] for a heap profile of a leak outside the heap: it takes twice as
 *   long as the first one, which had too few samples
 * @property {boolean} [isLast] waits for all other captures; by default the shortest begins first
 * @property {string} [why] content of the capture, for the documentation
 *
 * @typedef {ByDiagnosis | BySignal | ByRunway | ByDeath} When
 * @typedef {object} ByDiagnosis a diagnosis reaches a state
 * @property {string} diagnosis
 * @property {'suspected' | 'confirmed'} state `suspected` also applies to confirmed verdicts
 * @typedef {object} BySignal a signal is above or below a value for a time
 * @property {import('@memwatch/engine/signals/index').FigureName} signal
 * @property {number} [above] threshold in the unit of the signal
 * @property {number} [below]
 * @property {number} forSeconds
 * @typedef {object} ByRunway the time to the limit, `secondsLeft` of a verdict, falls below a time
 * @property {number} runwayBelowSeconds
 * @typedef {object} ByDeath a process died: the next process of its name is captured at half of the
 *   age at which it died
 * @property {readonly import('../deaths/reasons').ReasonName[]} death
 */

const HOUR = 3600

/**
 * Share of the objects that pile up from which a line of the app is their owner. In a quiet heap,
 * timers and requests have smaller shares.
 */
const MAIN_OWNER_SHARE = 0.4

/** Modules of Node.js that allocate data for the app, such as decoded text. */
const OF_DATA = /^node:(?:string_decoder|buffer|net|_http_\w+|internal\/(?:streams\/|deps\/undici))/

/**
 * Share of the objects that pile up from which functions of the app that create Buffers are their
 * owners, together. Two apps whose Buffers piled up had 0.27 and 0.57.
 */
const BUFFERS_SHARE = 0.2
/** Modules of Node.js, and functions of V8, that create Buffers. */
const CREATES_BUFFERS = /^(?:node:(?:internal\/)?buffer|\w*Array(?:Buffer)?)$/

/** @typedef {readonly { file: string, share: number, through?: string[] }[]} Sites */

/** @param {Sites} sites */
function isOfPackage (sites) {
  const share = Math.max(...sites.map(({ share }) => share))
  const most = sites.find(site => site.share === share)
  return most !== undefined && share >= MAIN_OWNER_SHARE && originOf(most.file) === 'dependency'
}

/** @param {{ file: string }} site */
const isOfApp = ({ file }) => originOf(file) !== 'node'

/** @param {Sites} known */
const hasNoMainOwner = known =>
  !known.some(site => isOfApp(site) && site.share >= MAIN_OWNER_SHARE)

/**
 * True if handlers of data may own growing Buffers: nearly every server has such handlers, and they
 * replace what the heap profile names.
 * @param {Sites} known
 */
const mayBeOfHandlers = known => hasNoMainOwner(known) &&
  known.filter(({ through = [] }) => through.some(place => CREATES_BUFFERS.test(place)))
    .filter(isOfApp)
    .reduce((sum, { share }) => sum + share, 0) < BUFFERS_SHARE

/** @param {{ file: string }} site */
const isDataOfNode = ({ file }) => OF_DATA.test(file)

/**
 * A rule for one diagnosis. A profile, which names lines of code, takes time, so it begins with the
 * first suspicion. A diagnostic report is written at once and stops the app for some 25 ms, so it
 * waits for confirmation.
 * @param {string} diagnosis
 * @param {import('./rules').ByDiagnosis['state']} state
 * @param {CaptureRule['what']} what
 * @param {string} why
 * @returns {CaptureRule}
 */
const row = (diagnosis, state, what, why) => Object.freeze({
  name: diagnosis,
  when: Object.freeze({ diagnosis, state }),
  what,
  everySeconds: HOUR,
  why
})

/**
 * The built-in rules. Rules for processes with a short time to live come first: if two rules
 * request the same kind of capture from one target at once, the first one is applied.
 * @type {readonly CaptureRule[]}
 */
const defaultRules = Object.freeze([
  Object.freeze({
    name: 'last-minute',
    when: Object.freeze({ runwayBelowSeconds: 60 }),
    what: 'heap_profile',
    // The process sends the first reading after a third of this time: a process that dies within
    // four seconds leaves no suspects.
    seconds: 12,
    everySeconds: HOUR,
    why: 'lines of the leak, sent before the process dies'
  }),
  Object.freeze({
    name: 'after-death',
    when: Object.freeze({ death: Object.freeze(/** @type {const} */ (['heap_oom', 'oom_kill'])) }),
    what: 'heap_profile',
    everySeconds: HOUR,
    why: 'lines of a leak that killed the process before it was suspected'
  }),
  row('context-leak', 'suspected', 'heap_profile', 'lines that create the objects of the contexts'),
  row('resource-leak', 'suspected', 'heap_profile', 'lines that open the handles that stay open'),
  Object.freeze({
    ...row('resource-leak', 'suspected', 'cpu_profile', 'calls that open files, if files pile up'),
    name: 'resource-leak-opens',
    names: /** @type {const} */ ('opens')
  }),
  row('js-heap-leak', 'suspected', 'heap_profile', 'lines that allocate the surviving objects'),
  row('buffer-pool-pinning', 'suspected', 'heap_profile', 'lines that retain parts of the pool'),
  row('native-memory-leak', 'suspected', 'heap_profile', 'lines whose objects own native memory'),
  Object.freeze({
    ...row('native-memory-leak', 'suspected', 'cpu_profile',
      'calls of native code and WebAssembly, if no object owns the memory'),
    name: 'native-memory-leak-calls',
    isNeeded: hasNoMainOwner
  }),
  Object.freeze({
    ...row('native-memory-leak', 'suspected', 'cpu_profile',
      'handlers of data, if Buffers grow that no line of the app allocates'),
    name: 'native-memory-leak-handlers',
    isNeeded: mayBeOfHandlers,
    names: /** @type {const} */ ('handlers'),
    isLast: true
  }),
  Object.freeze({
    ...row('native-memory-leak', 'suspected', 'heap_profile',
      'the same in twice the time, if no line is known'),
    name: 'native-memory-leak-second',
    isNeeded: (/** @type {Sites} */ known) => known.length === 0,
    isSecond: true,
    isLast: true
  }),
  Object.freeze({
    ...row('js-heap-leak', 'suspected', 'cpu_profile',
      'handlers of data, if Node.js itself allocates what survives'),
    name: 'js-heap-leak-handlers',
    isNeeded: (/** @type {Sites} */ known) => known.some(isDataOfNode) && !known.some(isOfApp),
    isLast: true
  }),
  ...['js-heap-leak', 'native-memory-leak'].map(diagnosis => Object.freeze({
    ...row(diagnosis, 'suspected', 'cpu_profile',
      'functions of the app inside a package that allocates what survives'),
    name: `${diagnosis}-inner-calls`,
    seconds: 5,
    isNeeded: isOfPackage,
    names: /** @type {const} */ ('inner'),
    isLast: true
  })),
  // A profile would run full GCs in a full heap.
  row('heap-limit-thrash', 'confirmed', 'report', 'size and use of each space of the heap'),
  row('container-limit-mismatch', 'confirmed', 'report', 'limits and flags of the process'),
  row('array-buffer-pile-up', 'suspected', 'allocation_profile', 'lines that allocate the Buffers'),
  row('semi-space-starvation', 'suspected', 'gc_trace', 'what each scavenge frees and promotes'),
  row('allocator-fragmentation', 'confirmed', 'report',
    'loaded libraries: malloc and its replacements'),
  row('event-loop-blocked', 'suspected', 'cpu_profile', 'the call that blocks'),
  row('cpu-throttling', 'confirmed', 'report', 'CPU usage and limits of the process'),
  row('oversized-heap', 'confirmed', 'gc_trace', 'what each GC leaves in each space'),
  row('idle-heap-not-returned', 'confirmed', 'report', 'spaces of the heap: committed and used'),
  row('pointer-compression-candidate', 'confirmed', 'report', 'loaded addons, which need a build each')
])

module.exports = { defaultRules }

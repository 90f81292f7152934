'use strict'

const { originOf } = require('@memwatch/engine/text/code-owner')
const { findCase } = require('@memwatch/engine/verdicts/case')

/**
 * Diagnosis that a requested capture can explain, by the kind of the capture.
 * @type {Record<string, string>}
 */
const DIAGNOSES = { heap_profile: 'js-heap-leak', cpu_profile: 'event-loop-blocked' }

/** Diagnosis of a main thread about the whole process, whose cause may be in a worker. */
const OF_PROCESS = 'native-memory-leak'
/** Diagnosis of objects that pile up. */
const OF_OBJECTS = 'js-heap-leak'
/** Diagnosis of handles that pile up. */
const OF_HANDLES = 'resource-leak'
/** Diagnosis of a full heap, which may grow or not. */
const FULL_HEAP = 'heap-limit-thrash'
/** Share of the time in native code from which one call explains native memory. */
const MAIN_CALL_SHARE = 0.5
/** Least growth during the profile of a full heap, as a share of its live objects. */
const LEAST_GROWTH_SHARE = 0.05

/**
 * Size of a profile's text from which the profile may have left memory in malloc. CPU profiles of
 * an ordinary app had 0.1 MiB. Those of deep, ever-new call stacks had 5.4 MiB, and RSS rose by 56
 * to 75 MiB.
 */
const LARGE_PROFILE_BYTES = 2 ** 22

/** @param {{ file: string }} site */
const isOfNode = ({ file }) => originOf(file) === 'node'

/**
 * Attaches the suspects of a capture to the verdict that they explain, whether the capture was
 * automatic or requested. The error of a failed capture belongs to the verdict that caused it.
 * Suspects of a running capture come from its first reading: they stand until the capture ends.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('./captures').Capture} capture
 */
function attach (target, capture) {
  const { id, kind, diagnosis: cause, requestedUnixMs, error, suspects, retainers } = capture
  const diagnosis = cause ?? DIAGNOSES[kind]
  const { earlySuspects } = findCase(target)
  for (const [of, { captureId }] of earlySuspects) if (captureId === id) earlySuspects.delete(of)
  if (error) {
    if (cause) attachError(target, cause, error)
    return
  }
  if (cause) findCase(target).captureErrors.delete(cause)
  const atSeconds = (requestedUnixMs - target.hello.startedAtUnixMs) / 1000
  const { captured } = findCase(target)
  captured.set(kind, atSeconds)
  const isLarge = capture.parts.some(({ bytes }) => bytes >= LARGE_PROFILE_BYTES)
  if (isLarge && kind.endsWith('_profile')) captured.set('large_profile', atSeconds)
  if (retainers && retainers.piles.length > 0) {
    const { refused, piles, sinceUnixMs = null } = retainers
    const of = { captureId: id, file: null, atUnixMs: requestedUnixMs, sinceUnixMs }
    findCase(target).holders = { ...of, refused, piles }
  }
  if (!suspects || suspects.sites.length === 0 || !diagnosis) return
  const { liveHeapBytes = 0 } = target.values
  // A heap that is full and does not grow has no suspects: its growth is noise.
  if (diagnosis === FULL_HEAP && suspects.total < LEAST_GROWTH_SHARE * liveHeapBytes) return
  // Calls of native code are the weaker evidence, unless most of the time is in one of them, or a
  // heap profile names only Node.js itself.
  const { of = null, sites: known = [] } =
    findCase(target).suspects.get(diagnosis)?.suspects ?? {}
  const isWeak = suspects.of === 'native seconds' && suspects.sites[0].share < MAIN_CALL_SHARE
  if (isWeak && !known.every(isOfNode)) return
  // Descriptors are numbers, and WebAssembly memory grows without new objects: meanwhile a heap
  // profile shows other growth, unless most of it has one owner, such as open streams. Owners of
  // WebAssembly memory are objects of the package that is compiled to it.
  const hasEvidence = (/** @type {string} */ figure) => findCase(target).verdicts.some(
    ({ evidence }) => evidence.some(({ signal }) => signal === figure))
  const isOfFiles = of === 'opening seconds' && hasEvidence('fileDescriptorsOfFiles')
  const isOfWebAssembly = of === 'native seconds' && known[0].share >= MAIN_CALL_SHARE &&
    hasEvidence('webassemblyGrowthBytesPerSecond')
  const isOther = suspects.of === 'grown bytes' && (suspects.sites[0].share < MAIN_CALL_SHARE ||
    (isOfWebAssembly && suspects.sites[0].via === null))
  if ((isOfFiles || isOfWebAssembly) && isOther) return
  const attached = { captureId: id, kind, atUnixMs: requestedUnixMs, suspects }
  const isRunning = capture.state === 'running'
  // While the first samples name only Node.js itself, later ones may name the app. At the end they
  // replace no other suspects, and explain no handles: Node.js opens these only for its callers.
  const mayBeOfNode = !isRunning && diagnosis !== OF_HANDLES && known.every(isOfNode)
  if (suspects.sites.every(isOfNode) && !mayBeOfNode) return
  const all = findCase(target)[isRunning ? 'earlySuspects' : 'suspects']
  // Handles, and owners of native memory, are objects that pile up in the heap as well. One heap
  // profile is made for both findings. Owners come first: they explain the heap if they allocated
  // most of it.
  const holdsObjects = diagnosis === OF_HANDLES ||
    (diagnosis === OF_PROCESS && capture.thread === target.thread && !isOther)
  const ofObjects = findCase(target).suspects.get(OF_OBJECTS)
  const isShared = holdsObjects && kind === 'heap_profile' &&
    (!ofObjects || ofObjects.captureId === findCase(target).suspects.get(diagnosis)?.captureId) &&
    findCase(target).verdicts.some(({ diagnosis, state }) =>
      diagnosis === OF_OBJECTS && (state === 'suspected' || state === 'confirmed'))
  all.set(diagnosis, attached)
  if (isShared) all.set(OF_OBJECTS, attached)
}

/**
 * Attaches the reason why a capture was not possible to the verdict that caused it.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {string} diagnosis
 * @param {string} error
 */
function attachError (target, diagnosis, error) {
  findCase(target).captureErrors.set(diagnosis, error)
}

/**
 * Attaches the suspects of captures that were stored by an earlier exporter.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('./captures').Capture[]} captures newest first
 */
function attachEarlier (target, captures) {
  const { hello, thread } = target
  // A capture of a worker may be due to a verdict of the main thread.
  const isOf = (/** @type {import('./captures').Capture} */ capture) => capture.thread === thread ||
    (hello.threadId === 0 && capture.diagnosis === OF_PROCESS)
  for (const capture of captures.slice().reverse()) {
    const isSame =
      capture.pid === hello.pid &&
      capture.host === (hello.host ?? null) &&
      capture.startedAtUnixMs === hello.startedAtUnixMs &&
      isOf(capture)
    if (isSame) attach(target, capture)
  }
}

module.exports = { attach, attachEarlier, attachError, OF_PROCESS }

'use strict'

/**
 * The tracks: the numbers whose history is kept for every target. A track is one number read out of a frame's values; a
 * signal names the tracks it is computed from. `keep` says what a coarser tier keeps of a step: counters and readings their
 * last value, ceilings their highest, floors their lowest.
 *
 * @typedef {import('memwatch/frame').Frame['values']} Values
 * @typedef {object} Track
 * @property {import('memwatch/frame').Unit} unit
 * @property {'last' | 'min' | 'max'} keep
 * @property {(values: Values) => number | undefined} read
 */

/** @param {keyof Values} field @param {'last'|'min'|'max'} [keep] @returns {Track} */
function field (field, keep = 'last') {
  const { fields } = require('memwatch/frame')
  return { unit: fields[field].unit, keep, read: values => values[field] }
}

/**
 * Sum over the GC kinds and causes that `accepts` takes.
 * @param {Values} values @param {0 | 1} column 0 counts, 1 pause seconds @param {(kind: string, cause: string) => boolean} accepts
 * @returns {number | undefined}
 */
function sumGc (values, column, accepts) {
  if (!values.gc) return undefined
  let sum = 0
  for (const [key, row] of Object.entries(values.gc)) {
    const [kind, cause] = key.split('/')
    if (accepts(kind, cause)) sum += row[column]
  }
  return sum
}

/** @param {string} kind */
const isScavenge = kind => kind === 'minor' || kind === 'minor_mark_sweep'
/** @param {string} kind @param {string} cause Incremental marking steps belong to the ordinary majors they prepare. */
const isOrdinaryMajor = (kind, cause) => (kind === 'major' && cause === 'ordinary') || kind === 'incremental'

const tracks = Object.freeze({
  rssBytes: field('rssBytes', 'min'),
  externalBytes: field('externalBytes'),
  externalPeakBytes: field('externalPeakBytes', 'max'),
  liveHeapBytes: field('liveHeapBytes'),
  liveHeapMajors: field('liveHeapMajors'),
  mallocSpanBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'last',
    read: values => values.mallocHeapBytes === undefined ? undefined : values.mallocHeapBytes + (values.mallocArenaBytes ?? 0)
  }),
  mallocArenaBytes: field('mallocArenaBytes'),
  nativeBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'min',
    // Anonymous memory that neither the V8 heap nor a Buffer accounts for. A Buffer that was never written to counts as
    // external but not as resident, so the difference can fall below zero.
    read: values => values.rssAnonBytes === undefined || values.externalBytes === undefined
      ? undefined
      : Math.max(0, values.rssAnonBytes - (values.heapPhysicalBytes ?? 0) - values.externalBytes)
  }),
  eventLoopActiveSeconds: field('eventLoopActiveSeconds'),
  eventLoopIdleSeconds: field('eventLoopIdleSeconds'),
  semiSpaceCapacityBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'max',
    // used + available of the new space is the capacity of one semi-space: measured on V8 10.2 to 14.6.
    read: values => values.spaces?.new_space && values.spaces.new_space[0] + values.spaces.new_space[2]
  }),
  scavenges: /** @type {Track} */ ({ unit: 'count', keep: 'last', read: values => sumGc(values, 0, isScavenge) }),
  scavengePauseSeconds: /** @type {Track} */ ({ unit: 'seconds', keep: 'last', read: values => sumGc(values, 1, isScavenge) }),
  ordinaryMajors: /** @type {Track} */ ({
    unit: 'count', keep: 'last', read: values => sumGc(values, 0, (kind, cause) => kind === 'major' && cause === 'ordinary')
  }),
  ordinaryMajorPauseSeconds: /** @type {Track} */ ({
    unit: 'seconds', keep: 'last', read: values => sumGc(values, 1, isOrdinaryMajor)
  }),
  gcPauseSeconds: /** @type {Track} */ ({ unit: 'seconds', keep: 'last', read: values => sumGc(values, 1, () => true) })
})

/** @typedef {keyof typeof tracks} TrackName */
const trackNames = /** @type {TrackName[]} */ (Object.keys(tracks))

module.exports = { tracks, trackNames }

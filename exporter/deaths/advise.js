'use strict'

const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')

const MIB = 2 ** 20
/** Share of the container for memory that can be predicted; the rest is reserve. */
const CONTAINER_SHARE = 0.9
/** Step of recommended heap limits. */
const STEP_MIB = 32
/** Least useful increase of a limit. */
const WORTH_GROWTH = 1.15
/**
 * Least rise, as a share, of a heap that has grown; a smaller rise may be garbage that comes and
 * goes.
 */
const LEAST_RISE_SHARE = 0.2
/** Least number of readings, each above the previous one, that prove growth. */
const LEAST_READINGS = 3

/**
 * Advice for the search for a leak: flags that write a heap snapshot or a report before the process
 * dies. The app runs as before.
 */
const LOOK_FURTHER =
  'To find the objects that filled the heap: node --heapsnapshot-near-heap-limit=1 writes a heap ' +
    'snapshot at the limit (it takes seconds, and as much additional memory as the heap), node ' +
    '--report-on-fatalerror writes the stack and the heap spaces.'

/**
 * Advice after a full heap. The app leaked, or the heap was too small for its work. A few frames
 * cannot decide this, so the text names both causes, and a way to distinguish them.
 * @param {import('./reasons').ReasonName} reason
 * @param {import('./last-moments').LastMoments} moments
 * @returns {string | null} sentences; null without advice
 */
function advise (reason, moments) {
  if (reason !== 'heap_oom') return null
  return [sayGrowth(moments), sayRoom(moments), LOOK_FURTHER].filter(text => text !== '').join(' ')
}

/** @param {import('./last-moments').LastMoments} moments */
function sayGrowth ({ heapRise, heapSizeLimitBytes }) {
  const either =
    'either the process keeps objects that it no longer needs (js-heap-leak), or its live ' +
      'objects need more than'
  const limit =
    heapSizeLimitBytes === undefined
      ? 'its limit'
      : `the limit of ${formatBytes(heapSizeLimitBytes)}`
  if (!heapRise || heapRise.toBytes - heapRise.fromBytes < LEAST_RISE_SHARE * heapRise.toBytes) {
    return `No growth was visible before: ${either} ${limit}, all at once.`
  }
  const { fromBytes, toBytes, seconds, readings, falls } = heapRise
  const rate = formatBytes((toBytes - fromBytes) / seconds)
  const rose = `The heap grew from ${formatBytes(fromBytes)} to ${formatBytes(toBytes)} in its ` +
    `last ${formatSeconds(seconds)}, by ${rate}/s`
  const line =
    readings >= LEAST_READINGS
      ? falls === 0
        ? `, and more memory was in use after each of ${readings} major GCs. A leak grows like ` +
          'this, and so does work that first collects all its results'
        : `, and fell after ${falls} of ${readings} major GCs`
      : ''
  return `${rose}${line}. So ${either} ${limit}.`
}

/** @param {import('./last-moments').LastMoments} moments */
function sayRoom ({ rssBytes, heapUsedBytes, heapSizeLimitBytes, containerLimitBytes }) {
  if (heapSizeLimitBytes === undefined || rssBytes === undefined || heapUsedBytes === undefined) {
    return ''
  }
  const apart = 'separates the two cases: work then ends, a leak only takes longer'
  if (containerLimitBytes === undefined) {
    return `A higher limit ${apart}: --max-old-space-size=${roundMib(2 * heapSizeLimitBytes)}.`
  }
  const besideBytes = Math.max(0, rssBytes - heapUsedBytes)
  const fitsMib =
    Math.floor((CONTAINER_SHARE * containerLimitBytes - besideBytes) / MIB / STEP_MIB) * STEP_MIB
  return fitsMib * MIB >= WORTH_GROWTH * heapSizeLimitBytes
    ? `A higher limit ${apart}: the container of ${formatBytes(containerLimitBytes)} has room ` +
      `for --max-old-space-size=${fitsMib}.`
    : `A container with more memory ${apart}: this one of ${formatBytes(containerLimitBytes)} ` +
      'has no room for a higher heap limit.'
}

/** @param {number} bytes */
const roundMib = bytes => Math.ceil(bytes / MIB / STEP_MIB) * STEP_MIB

/**
 * @param {string | null | undefined} advice
 * @returns {string | null} the advice without the part about a heap snapshot, for a process that
 *   wrote one
 */
const withoutSnapshot = advice => advice?.replace(LOOK_FURTHER, '').trim() || null

module.exports = { advise, withoutSnapshot, LOOK_FURTHER }

'use strict'

const fs = require('node:fs')
const zlib = require('node:zlib')

/** Counters that begin with the agent, apart from those of GCs. */
const COUNTED_BY_AGENT = Object.freeze(/** @type {const} */ ([
  'gcUnobservedSeconds', 'collectSeconds', 'agentErrors', 'framesDropped'
]))

/**
 * A recording as items, by the wall clock.
 * @param {string} file
 */
function readItems (file) {
  const items = zlib.gunzipSync(fs.readFileSync(file)).toString().split('\n').filter(Boolean)
    .map(line => JSON.parse(line))
  const times = items.filter(isFrame).map(({ line }) => line.atUnixMs)
  return { items, first: Math.min(...times), last: Math.max(...times) }
}

/** @param {any} item */
const isFrame = item => item.line?.type === 'frame'

/**
 * @param {string} name
 * @param {any[]} items
 */
const inputOf = (name, items) => ({
  name,
  bytes: async function * () {
    yield Buffer.from(items.map(item => `${JSON.stringify(item)}\n`).join(''))
  },
  cut: false
})

/**
 * Changes a recording as if the agent had been attached during the run: GCs are counted from then
 * on, and the live heap is known only after the next major GC.
 * @param {string} file
 * @param {number} share of its time before the attach
 */
function attachedAt (file, share) {
  const { items, first, last } = readItems(file)
  const atUnixMs = first + share * (last - first)
  /** Last values before the attach, by session. @type {Record<number, any>} */
  const before = {}
  const kept = items.flatMap(item => {
    if (!isFrame(item)) return [item]
    const { session, line } = item
    const earlier = before[session] ??= {}
    if (line.atUnixMs < atUnixMs) {
      Object.assign(earlier, line.values)
      return []
    }
    return [{ session, line: { ...line, values: since(line.values, earlier) } }]
  })
  return inputOf(file, kept)
}

/**
 * @param {any} values
 * @param {any} earlier
 */
function since (values, earlier) {
  const counted = { ...values }
  for (const name of COUNTED_BY_AGENT) {
    if (counted[name] !== undefined) counted[name] -= earlier[name] ?? 0
  }
  if (values.gc) {
    counted.gc = Object.fromEntries(Object.entries(values.gc).flatMap(([kind, row]) => {
      const [count, sum, longest, buckets] = /** @type {any} */ (row)
      const [countBefore, sumBefore, , bucketsBefore] = earlier.gc?.[kind] ?? [0, 0, 0, []]
      return count === countBefore
        ? []
        : [[kind, [
            count - countBefore, sum - sumBefore, longest,
            buckets.map((/** @type {number} */ n, /** @type {number} */ i) =>
              n - (bucketsBefore[i] ?? 0))
          ]]]
    }))
  }
  const majors = (values.liveHeapMajors ?? 0) - (earlier.liveHeapMajors ?? 0)
  if (majors > 0) return { ...counted, liveHeapMajors: majors }
  const { liveHeapMajors, liveHeapBytes, ...unknown } = counted
  return unknown
}

/**
 * Returns the first part of a recording.
 * @param {string} file
 * @param {number} share of its time
 */
function beginningOf (file, share) {
  const { items, first, last } = readItems(file)
  const untilUnixMs = first + share * (last - first)
  return inputOf(file, items.filter(item =>
    !isFrame(item) || item.line.atUnixMs <= untilUnixMs))
}

module.exports = { attachedAt, beginningOf }

'use strict'

const { Columns } = require('./columns')
const { merge } = require('./keep')
const { PackedColumns } = require('./packed-columns')
const { median } = require('../statistics/quantile')
const { NO_NEIGHBOURS, tracks, trackNames } = require('./tracks')

/**
 * Tiers of every target's history: a row a second for ten minutes, a row every ten seconds for two
 * hours, a row a minute for a day. The tiers beyond ten minutes store only the tracks from which
 * growth is computed, in single precision. The history of a full day takes some 300 KB.
 */
const TIERS = Object.freeze([
  { stepSeconds: 1, rows: 600, narrow: false },
  { stepSeconds: 10, rows: 720, narrow: true },
  { stepSeconds: 60, rows: 1440, narrow: true }
])

/**
 * Tier for growth over days: one number per column for every ten minutes of eight days, computed
 * from the tier of minutes. Five columns in single precision take 32 KB. Levels are medians,
 * because a single reading includes memory of unfinished requests. RSS is a maximum, because its
 * peaks before a major GC reach a limit first. Counters are stored as growth per second.
 */
const LASTING = Object.freeze({
  stepSeconds: 600,
  rows: 1152,
  columns: Object.freeze(
    /** @satisfies {Record<string, (points: Points) => number>} */ ({
      liveHeapBytes: medianOf,
      outsideHeapBytes: medianOf,
      rssBytes: peakOf,
      workSeconds: ratePerSecond,
      scavenges: ratePerSecond
    })
  )
})
/** @typedef {{ times: number[], values: number[] }} Points */
/** @typedef {keyof typeof LASTING.columns} LastingName */
const LASTING_NAMES = /** @type {LastingName[]} */ (Object.keys(LASTING.columns))

/** @param {Points} points */
function medianOf ({ values }) {
  return values.length > 0 ? median(values) : NaN
}

/** @param {Points} points */
function peakOf ({ values }) {
  return values.length > 0 ? Math.max(...values) : NaN
}

/** @param {Points} points */
function ratePerSecond ({ times, values }) {
  const seconds = times.length > 1 ? times[times.length - 1] - times[0] : 0
  return seconds > 0 ? (values[values.length - 1] - values[0]) / seconds : NaN
}

const COARSEST_SECONDS = TIERS[TIERS.length - 1].stepSeconds

/**
 * Tracks that are stored beyond ten minutes come first, so a coarser tier stores the first columns
 * of the finest tier.
 */
const ordered = [...trackNames].sort(
  (a, b) => Number(tracks[b].long ?? false) - Number(tracks[a].long ?? false)
)
const LONG = ordered.filter(name => tracks[name].long).length
const READ = ordered.map(name => tracks[name].read)
const KEEP = ordered.map(name => tracks[name].keep)
/** @type {Record<string, number>} */
const columnOf = Object.fromEntries(ordered.map((name, i) => [name, i]))

/**
 * Tracks of one target over time, in tiers from the finest to the coarsest. Time is the uptime of
 * the isolate in seconds: it never jumps, and is the same live and in a replay.
 */
class History {
  #tiers = TIERS.map(({ stepSeconds, rows, narrow }) => ({
    stepSeconds,
    rows,
    columns: narrow
      ? new Columns({ capacity: rows, width: LONG, narrow })
      : new PackedColumns({ capacity: rows, width: ordered.length })
  }))

  #lasting = new Columns({ capacity: LASTING.rows, width: LASTING_NAMES.length, narrow: true })
  #lastingRows = 0
  #row = new Float64Array(ordered.length)
  #longRow = this.#row.subarray(0, LONG)
  #mergedRow = new Float64Array(LONG)

  /**
   * @param {number} timeSeconds
   * @param {import('./tracks').Moment} moment
   * @returns {Float64Array} values of the tracks, in the order of `ordered`; valid until the next
   *   call
   */
  append (timeSeconds, { values, workers, neighbours = NO_NEIGHBOURS, scan }) {
    for (let i = 0; i < READ.length; i++) {
      this.#row[i] = READ[i](values, workers, scan, neighbours) ?? NaN
    }
    for (const tier of this.#tiers) this.#appendTo(tier, timeSeconds)
    return this.#row
  }

  /**
   * Appends a row that was saved earlier.
   * @param {number} stepSeconds step of the tier that receives the row
   * @param {number} timeSeconds uptime; later than all rows of the tier
   * @param {(track: import('./tracks').TrackName) => number} read returns NaN if the track was
   *   absent
   */
  restore (stepSeconds, timeSeconds, read) {
    const tier = this.#tiers.find(tier => tier.stepSeconds === stepSeconds)
    if (!tier) return
    for (let i = 0; i < ordered.length; i++) this.#row[i] = read(ordered[i])
    this.#appendTo(tier, timeSeconds)
  }

  /**
   * Writes the current row.
   * @param {{ stepSeconds: number, columns: Columns | PackedColumns }} tier
   * @param {number} timeSeconds
   */
  #appendTo ({ stepSeconds, columns }, timeSeconds) {
    if (columns instanceof PackedColumns) return columns.append(timeSeconds, this.#row)
    const last = columns.length - 1
    if (stepSeconds === COARSEST_SECONDS && last >= 0) this.#summarize(columns, timeSeconds)
    const sameStep =
      last >= 0 &&
      Math.floor(columns.timeAt(last) / stepSeconds) === Math.floor(timeSeconds / stepSeconds)
    if (sameStep) columns.replaceLast(timeSeconds, this.#merged(columns, last))
    else columns.append(timeSeconds, this.#longRow)
  }

  /**
   * Points of a track since a time, from the finest tier that reaches back that far. If no tier
   * does, the tier that reaches back furthest is read. Rows without the track are left out.
   * @param {import('./tracks').TrackName} name
   * @param {number} sinceSeconds
   * @returns {{ times: number[], values: number[] }}
   */
  points (name, sinceSeconds) {
    const column = columnOf[name]
    const columns = this.#tierFor(column, sinceSeconds)
    return columns.pointsFrom(column, columns.firstSince(sinceSeconds))
  }

  /**
   * Points of a track in the first row since a time, and in each row in which a counter changed. A
   * long history has many other rows; the track is not read there.
   * @param {import('./tracks').TrackName} name of a long track
   * @param {import('./tracks').TrackName} counter a long track; rows without it are left out
   * @param {number} sinceSeconds
   * @returns {{ times: number[], values: number[] }}
   */
  pointsOnChange (name, counter, sinceSeconds) {
    const [column, counted] = [columnOf[name], columnOf[counter]]
    const columns = this.#tierFor(counted, sinceSeconds)
    const { length } = columns
    /** @type {{ times: number[], values: number[] }} */
    const points = { times: [], values: [] }
    let before = NaN
    for (let i = columns.firstSince(sinceSeconds); i < length; i++) {
      const count = columns.valueAt(i, counted)
      if (count === before || Number.isNaN(count)) continue
      before = count
      const value = columns.valueAt(i, column)
      if (Number.isNaN(value)) continue
      points.times.push(columns.timeAt(i))
      points.values.push(value)
    }
    return points
  }

  /**
   * First and last point of a track since a time. If only one point is that young, the first is the
   * point before it.
   * @param {import('./tracks').TrackName} name
   * @param {number} sinceSeconds
   * @param {number} [atMostSinceSeconds] least time of the point before
   * @returns {{ first: number, last: number, overSeconds: number } | null} null without points
   */
  ends (name, sinceSeconds, atMostSinceSeconds = sinceSeconds) {
    const column = columnOf[name]
    const columns = this.#tierFor(column, sinceSeconds)
    let from = columns.firstSince(sinceSeconds)
    let to = columns.length - 1
    while (from <= to && Number.isNaN(columns.valueAt(from, column))) from++
    while (to > from && Number.isNaN(columns.valueAt(to, column))) to--
    if (from > to) return null
    if (from === to) from = this.#before(columns, column, to, atMostSinceSeconds)
    return {
      first: columns.valueAt(from, column),
      last: columns.valueAt(to, column),
      overSeconds: columns.timeAt(to) - columns.timeAt(from)
    }
  }

  /**
   * @param {Columns | PackedColumns} columns
   * @param {number} column
   * @param {number} row
   * @param {number} sinceSeconds
   * @returns {number} the last row before with a value, not older than a time; otherwise `row`
   */
  #before (columns, column, row, sinceSeconds) {
    for (let i = row - 1; i >= 0 && columns.timeAt(i) >= sinceSeconds; i--) {
      if (!Number.isNaN(columns.valueAt(i, column))) return i
    }
    return row
  }

  /** Uptime of the newest row; 0 without one. */
  get lastSeconds () {
    const [{ columns }] = this.#tiers
    return columns.length > 0 ? columns.timeAt(columns.length - 1) : 0
  }

  /**
   * Tracks second by second, for the ten minutes of the finest tier.
   * @param {number} sinceSeconds
   * @param {readonly import('./tracks').TrackName[]} [names] tracks to read; default: all
   * @returns {{ times: number[], tracks: Record<string, (number | null)[]> }} null where a track
   *   was absent
   */
  rows (sinceSeconds, names = ordered) {
    const [{ columns }] = this.#tiers
    const first = columns.firstSince(sinceSeconds)
    const rows = Array.from({ length: columns.length - first }, (_, i) => first + i)
    return {
      times: rows.map(i => columns.timeAt(i)),
      tracks: Object.fromEntries(
        names.map(name => [
          name,
          rows.map(i => {
            const value = columns.valueAt(i, columnOf[name])
            return Number.isNaN(value) ? null : value
          })
        ])
      )
    }
  }

  /**
   * Computes a row of the longest tier from the finished minutes.
   * @param {Columns} minutes
   * @param {number} timeSeconds time of the next row
   */
  #summarize (minutes, timeSeconds) {
    const step = Math.floor(minutes.timeAt(minutes.length - 1) / LASTING.stepSeconds)
    if (Math.floor(timeSeconds / LASTING.stepSeconds) === step) return
    const from = minutes.firstSince(step * LASTING.stepSeconds)
    const row = LASTING_NAMES.map(name => {
      const points = minutes.pointsFrom(columnOf[name], from)
      const statistic = LASTING.columns[name]
      // A minute stores the minimum of RSS, so peaks come from seconds, unless rows are restored.
      return statistic === peakOf
        ? Math.max(peakOf(points), this.#peakOfSeconds(columnOf[name], step))
        : statistic(points)
    })
    this.#lasting.append((step + 0.5) * LASTING.stepSeconds, row)
    this.#lastingRows++
  }

  /**
   * @param {number} column
   * @param {number} step of the longest tier
   * @returns {number} -Infinity without rows of seconds, as in a restored history
   */
  #peakOfSeconds (column, step) {
    const [{ columns }] = this.#tiers
    const from = columns.firstSince(step * LASTING.stepSeconds)
    const { times, values } = columns.pointsFrom(column, from)
    return Math.max(...values.filter((_, i) => times[i] < (step + 1) * LASTING.stepSeconds))
  }

  /**
   * Number of rows that the longest tier ever received. Results computed from its rows stay valid
   * until this number grows.
   */
  get lastingRows () {
    return this.#lastingRows
  }

  /**
   * The longest tier: ten minutes a row.
   * @returns {{ times: number[], columns: Record<LastingName, number[]> }} times: the middle of
   *   each row; columns: medians, peaks and rates, see LASTING; NaN where absent
   */
  lasting () {
    const rows = Array.from({ length: this.#lasting.length }, (_, i) => i)
    return {
      times: rows.map(i => this.#lasting.timeAt(i)),
      columns: /** @type {Record<LastingName, number[]>} */ (
        Object.fromEntries(
          LASTING_NAMES.map((name, column) => [
            name,
            rows.map(i => this.#lasting.valueAt(i, column))
          ])
        )
      )
    }
  }

  /**
   * @param {number} column
   * @param {number} sinceSeconds
   */
  #tierFor (column, sinceSeconds) {
    if (column >= LONG) return this.#tiers[0].columns
    for (const { columns, rows } of this.#tiers) {
      if (columns.length < rows || columns.timeAt(0) <= sinceSeconds) return columns
    }
    return this.#tiers[this.#tiers.length - 1].columns
  }

  /**
   * @param {Columns} columns
   * @param {number} last
   */
  #merged (columns, last) {
    for (let i = 0; i < LONG; i++) {
      this.#mergedRow[i] = merge(KEEP[i], columns.valueAt(last, i), this.#longRow[i])
    }
    return this.#mergedRow
  }
}

module.exports = { History, TIERS, LASTING, ordered }

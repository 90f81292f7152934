'use strict'

const { tracks } = require('./tracks')
const { ordered } = require('./history')
const { Block } = require('./block')
const { merge } = require('./keep')

/**
 * Coarse steps that the recorder stores. The history of a target stores every second, but only for
 * ten minutes.
 */
const STEPS = Object.freeze([
  { stepSeconds: 10, keepSeconds: 6 * 3600 },
  { stepSeconds: 60, keepSeconds: 7 * 86_400 }
])
/** Rows of a block: ten minutes at the first step, an hour at the second. */
const BLOCK_ROWS = 60

/**
 * Statistics of each step. A counter stores only its last value; a gauge also its minimum and
 * maximum.
 */
const STATISTICS = Object.freeze(/** @type {const} */ (['last', 'min', 'max']))
/** @typedef {import('./keep').Keep} Statistic */

/**
 * Tracks over time. min and max are absent for counters.
 * @typedef {object} Series
 * @property {number[]} times uptime in seconds, at the end of each step
 * @property {Record<string, { last: number[], min?: number[], max?: number[] }>} tracks NaN where a
 *   track was absent
 */

/**
 * The columns of a step, in order.
 * @type {readonly { track: import('./tracks').TrackName, statistic: Statistic }[]}
 */
const columns = Object.freeze(
  ordered.flatMap(track =>
    STATISTICS.filter(statistic => statistic === 'last' || !tracks[track].counter).map(
      statistic => ({ track, statistic })
    )
  )
)
/** Position of each column's number in a row of the tracks, and in a row of the next finer step. */
const TRACK_OF = Int32Array.from(columns, ({ track }) => ordered.indexOf(track))
const SAME = Int32Array.from(columns, (_, c) => c)
const KEEP_OF = columns.map(({ statistic }) => statistic)

/**
 * A full block, packed in memory or saved to a file.
 * @typedef {object} SealedBlock
 * @property {number} stepSeconds
 * @property {number} from uptime in seconds
 * @property {number} to
 * @property {Buffer} [packed]
 * @property {() => Buffer} [read] reads a saved block; throws the errors of the file system
 */

/**
 * Flight recorder of a target: its tracks, every ten seconds for six hours and every minute for a
 * week. Each step stores the minimum and maximum of gauges, so no spike is lost.
 */
class Flight {
  #steps = STEPS.map(step => new Step(step))

  /** @param {number} stepSeconds one of STEPS */
  #step (stepSeconds) {
    return /** @type {Step} */ (this.#steps.find(step => step.stepSeconds === stepSeconds))
  }

  /**
   * @param {number} timeSeconds uptime
   * @param {ArrayLike<number>} row numbers of the tracks, in the order of `ordered`; NaN where
   *   absent
   */
  append (timeSeconds, row) {
    const [tens, minutes] = this.#steps
    const finished = tens.add(timeSeconds, row, TRACK_OF)
    if (finished) minutes.add(finished.time, finished.values, SAME)
  }

  /** Full blocks of all steps, oldest first. @returns {SealedBlock[]} */
  get sealed () {
    return this.#steps.flatMap(({ sealed }) => sealed)
  }

  /** Bytes of the packed blocks in memory. */
  get packedBytes () {
    return this.sealed.reduce((sum, { packed }) => sum + (packed?.length ?? 0), 0)
  }

  /**
   * Adds a block that was saved earlier. Saved blocks are added oldest first, before any new row.
   * @param {SealedBlock} block
   */
  restore (block) {
    this.#step(block.stepSeconds).sealed.push(block)
  }

  /**
   * Rebuilds the steps of one minute that no saved block contains yet, from the steps of ten
   * seconds.
   * @param {number} afterSeconds uptime
   */
  refill (afterSeconds) {
    const [tens, minutes] = this.#steps
    for (const block of tens.blocksSince(afterSeconds)) {
      block.times.forEach((time, i) => {
        if (time > afterSeconds) {
          minutes.add(
            time,
            Float64Array.from(SAME, c => block.valueAt(i, c)),
            SAME
          )
        }
      })
    }
  }

  /** Packs the unfinished blocks once no more rows will follow. */
  seal () {
    for (const step of this.#steps) step.seal()
  }

  /**
   * Rows after a time, step by step. `read` returns the statistic of a track that coarser tiers of
   * the history store.
   * @param {10 | 60} stepSeconds
   * @param {number} afterSeconds uptime
   * @returns {Iterable<{ time: number, read: (track: import('./tracks').TrackName) => number }>}
   */
  * steps (stepSeconds, afterSeconds) {
    for (const block of this.#step(stepSeconds).blocksSince(afterSeconds)) {
      for (let i = 0; i < block.length; i++) {
        if (block.times[i] > afterSeconds) {
          yield {
            time: block.times[i],
            read: track => block.valueAt(i, KEPT[ordered.indexOf(track)])
          }
        }
      }
    }
  }

  /** Removes a block. @param {SealedBlock} block */
  drop (block) {
    const step = this.#step(block.stepSeconds)
    step.sealed = step.sealed.filter(other => other !== block)
  }

  /**
   * End of a step's last full block, uptime; -Infinity without one.
   * @param {number} stepSeconds
   */
  sealedUntil (stepSeconds) {
    return this.#step(stepSeconds).sealed.at(-1)?.to ?? -Infinity
  }

  /**
   * Tracks over time, step by step.
   * @param {readonly import('./tracks').TrackName[]} names
   * @param {{ stepSeconds: 10 | 60, sinceSeconds?: number, untilSeconds?: number }} options uptime
   * @returns {Series} only the last value of each step for counters
   */
  series (names, { stepSeconds, sinceSeconds = -Infinity, untilSeconds = Infinity }) {
    const found = /** @type {Series} */ ({ times: [], tracks: {} })
    const readings = names.flatMap(name => {
      const index = ordered.indexOf(name)
      const statistics = tracks[name].counter ? STATISTICS.slice(0, 1) : STATISTICS
      const track = (found.tracks[name] = /** @type {Record<Statistic, number[]>} */ (
        Object.fromEntries(statistics.map(statistic => [statistic, /** @type {number[]} */ ([])]))
      ))
      return statistics.map(statistic => ({
        column: COLUMN_OF[statistic][index],
        into: track[statistic]
      }))
    })
    for (const block of this.#step(stepSeconds).blocksSince(sinceSeconds)) {
      for (let i = 0; i < block.length; i++) {
        if (block.times[i] < sinceSeconds || block.times[i] > untilSeconds) continue
        found.times.push(block.times[i])
        for (const { column, into } of readings) into.push(block.valueAt(i, column))
      }
    }
    return found
  }
}

/** Column of a statistic for each track; counters have only `last`. @param {Statistic} statistic */
const columnsOf = statistic =>
  ordered.map(track => {
    const at = columns.findIndex(column => column.track === track && column.statistic === statistic)
    return at >= 0
      ? at
      : columns.findIndex(column => column.track === track && column.statistic === 'last')
  })
const COLUMN_OF = { last: columnsOf('last'), min: columnsOf('min'), max: columnsOf('max') }
const KEPT = ordered.map((track, i) => COLUMN_OF[tracks[track].keep][i])

/**
 * One resolution of the recorder: the unfinished step, the block that receives it, and the full
 * blocks.
 */
class Step {
  /** @type {SealedBlock[]} */
  sealed = []
  #keepSeconds
  #open = new Block(columns.length)
  #time = NaN
  #values = new Float64Array(columns.length)

  /** @param {{ stepSeconds: number, keepSeconds: number }} step */
  constructor ({ stepSeconds, keepSeconds }) {
    this.stepSeconds = stepSeconds
    this.#keepSeconds = keepSeconds
  }

  /**
   * @param {number} time
   * @param {ArrayLike<number>} source
   * @param {Int32Array} at position of each column in the source row
   * @returns {{ time: number, values: Float64Array } | undefined} the finished step, if this row
   *   starts a new one
   */
  add (time, source, at) {
    const isNew = Math.floor(time / this.stepSeconds) !== Math.floor(this.#time / this.stepSeconds)
    const finished =
      isNew && !Number.isNaN(this.#time)
        ? { time: this.#time, values: this.#values.slice() }
        : undefined
    if (finished) this.#write(finished.time, finished.values)
    if (isNew) this.#values.fill(NaN)
    this.#time = time
    const values = this.#values
    for (let c = 0; c < at.length; c++) values[c] = merge(KEEP_OF[c], values[c], source[at[c]])
    return finished
  }

  /**
   * Blocks with rows since a time: the full ones, then the unfinished one.
   * @param {number} sinceSeconds
   * @returns {Iterable<Block>} without unreadable blocks
   */
  * blocksSince (sinceSeconds) {
    for (const { to, packed, read } of this.sealed) {
      if (to < sinceSeconds) continue
      try {
        const bytes = packed ?? read?.()
        if (bytes) yield Block.unpack(bytes, columns.length)
      } catch {} // The block was removed to make room, or is damaged: show the others.
    }
    yield this.#open
  }

  seal () {
    const { times } = this.#open
    if (times.length === 0) return
    const to = times[times.length - 1]
    this.sealed.push({
      stepSeconds: this.stepSeconds,
      from: times[0],
      to,
      packed: this.#open.pack()
    })
    this.sealed = this.sealed.filter(block => block.to > to - this.#keepSeconds)
    this.#open = new Block(columns.length)
  }

  /**
   * @param {number} time
   * @param {Float64Array} values
   */
  #write (time, values) {
    this.#open.append(time, values)
    if (this.#open.length >= BLOCK_ROWS) this.seal()
  }
}

module.exports = { Flight, STEPS, columns }

'use strict'

const { tracks } = require('./tracks')
const { ordered } = require('./history')
const { Block } = require('./block')
const { merge } = require('./keep')

/** What is kept beyond the ten minutes of seconds that a target's history holds. */
const STEPS = Object.freeze([
  { stepSeconds: 10, keepSeconds: 6 * 3600 },
  { stepSeconds: 60, keepSeconds: 7 * 86_400 }
])
/** Rows of a block: ten minutes, an hour. */
const BLOCK_ROWS = 60

/**
 * Of a counter its last value is kept of each step; of what goes up and down the least and the
 * most, too.
 */
const STATISTICS = Object.freeze(/** @type {const} */ (['last', 'min', 'max']))
/** @typedef {import('./keep').Keep} Statistic */

/**
 * What tracks did over time. min and max are absent where there is only the last.
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
/** Where a column's number is in a row of the tracks, and in a row of the step below. */
const TRACK_OF = Int32Array.from(columns, ({ track }) => ordered.indexOf(track))
const SAME = Int32Array.from(columns, (_, c) => c)
const KEEP_OF = columns.map(({ statistic }) => statistic)

/**
 * A block that is full: packed, or where it was saved.
 * @typedef {object} SealedBlock
 * @property {number} stepSeconds
 * @property {number} from uptime in seconds
 * @property {number} to
 * @property {Buffer} [packed]
 * @property {() => Buffer} [read] from where it was saved; throws what the file system throws
 */

/**
 * A target's flight recorder: what its tracks did in every ten seconds of six hours and in every
 * minute of a week. No spike vanishes in a step, as its least and most are kept.
 */
class Flight {
  #steps = STEPS.map(step => new Step(step))

  /** @param {number} stepSeconds one of STEPS */
  #step (stepSeconds) {
    return /** @type {Step} */ (this.#steps.find(step => step.stepSeconds === stepSeconds))
  }

  /**
   * @param {number} timeSeconds uptime
   * @param {ArrayLike<number>} row of the tracks, in the order of `ordered`; NaN where there is
   *   none
   */
  append (timeSeconds, row) {
    const [tens, minutes] = this.#steps
    const finished = tens.add(timeSeconds, row, TRACK_OF)
    if (finished) minutes.add(finished.time, finished.values, SAME)
  }

  /** Blocks that are full, of all steps, oldest first. @returns {SealedBlock[]} */
  get sealed () {
    return this.#steps.flatMap(({ sealed }) => sealed)
  }

  /** Bytes of the packed blocks that are in memory. */
  get packedBytes () {
    return this.sealed.reduce((sum, { packed }) => sum + (packed?.length ?? 0), 0)
  }

  /** A block that was saved earlier, older than all that are here. @param {SealedBlock} block */
  restore (block) {
    this.#step(block.stepSeconds).sealed.push(block)
  }

  /**
   * Minutes that were in no full block when it was saved, anew from the ten seconds.
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

  /** Pack what there is of the blocks that are not full: nothing more will come. */
  seal () {
    for (const step of this.#steps) step.seal()
  }

  /**
   * Step by step, what a track is kept for: its least, its most or its last.
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

  /** Forget a block. @param {SealedBlock} block */
  drop (block) {
    const step = this.#step(block.stepSeconds)
    step.sealed = step.sealed.filter(other => other !== block)
  }

  /**
   * Until when a step's full blocks reach, uptime; -Infinity without any.
   * @param {number} stepSeconds
   */
  sealedUntil (stepSeconds) {
    return this.#step(stepSeconds).sealed.at(-1)?.to ?? -Infinity
  }

  /**
   * What tracks did, step by step.
   * @param {readonly import('./tracks').TrackName[]} names
   * @param {{ stepSeconds: 10 | 60, sinceSeconds?: number, untilSeconds?: number }} options uptime
   * @returns {Series} of a counter only the last of each step
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

/** Column of a track's statistic; of a counter, all are its last. @param {Statistic} statistic */
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
 * One resolution: the step that is being filled, the block that it goes to, and the blocks that are
 * full.
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
   * @param {Int32Array} at where each column is in it
   * @returns {{ time: number, values: Float64Array } | undefined} the step before, where this
   *   begins a new one
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
   * Full ones that reach so far, and the open one.
   * @param {number} sinceSeconds
   * @returns {Iterable<Block>} one that cannot be read is left out
   */
  * blocksSince (sinceSeconds) {
    for (const { to, packed, read } of this.sealed) {
      if (to < sinceSeconds) continue
      try {
        const bytes = packed ?? read?.()
        if (bytes) yield Block.unpack(bytes, columns.length)
      } catch {} // removed to make room, or damaged: the rest is still worth showing
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

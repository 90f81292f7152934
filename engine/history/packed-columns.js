'use strict'

const { firstSince } = require('./first-since')

/** Rows that are packed together. */
const ROWS = 40
/** Start of a constant column, which stores no cells. */
const CONSTANT = -1
/** @type {Readonly<{ time: number, row: number }>} */
const NONE_SOUGHT = Object.freeze({ time: NaN, row: 0 })

/**
 * A bounded table of numbers over time, like Columns, but in less than half the space. No number
 * loses precision. In most blocks a column is constant, or holds whole numbers of bytes. A column
 * stores differences from its first number in single precision, if these restore each number
 * exactly.
 */
class PackedColumns {
  #capacity
  #width
  /** Packed blocks, oldest first. @type {Packed[]} */
  #blocks = []
  #times = new Float64Array(ROWS)
  /** Numbers that are not packed yet, row after row. */
  #cells
  #open = 0
  /** Rows of the oldest block that are already discarded. */
  #skipped = 0
  /** Result of the last search. Signals of one moment search for the same times. */
  #sought = NONE_SOUGHT

  /**
   * @param {{ capacity: number, width: number }} size capacity: number of rows; width: number of
   *   columns
   */
  constructor ({ capacity, width }) {
    this.#capacity = capacity
    this.#width = width
    this.#cells = new Float64Array(ROWS * width)
  }

  /** Rows held now. */
  get length () {
    return this.#blocks.length * ROWS + this.#open - this.#skipped
  }

  /**
   * @param {number} time seconds; not earlier than the newest row
   * @param {ArrayLike<number>} row one number per column, NaN if absent
   */
  append (time, row) {
    if (this.#open === ROWS) {
      this.#blocks.push(new Packed(this.#times, this.#cells, this.#width))
      this.#open = 0
    }
    if (this.length === this.#capacity) this.#skipped++
    if (this.#skipped === ROWS) {
      this.#blocks.shift()
      this.#skipped = 0
    }
    this.#sought = NONE_SOUGHT
    this.#times[this.#open] = time
    this.#cells.set(row, this.#open++ * this.#width)
  }

  /** @param {number} i 0 is the oldest row */
  timeAt (i) {
    const at = i + this.#skipped
    const block = this.#blocks[Math.floor(at / ROWS)]
    return (block ? block.doubles : this.#times)[at % ROWS]
  }

  /**
   * @param {number} time
   * @returns {number} index of the oldest row at or after this time; length if there is none
   */
  firstSince (time) {
    if (this.#sought.time !== time) this.#sought = { time, row: firstSince(this, time) }
    return this.#sought.row
  }

  /**
   * @param {number} i 0 is the oldest row
   * @param {number} column
   * @returns {number} NaN if the number was absent
   */
  valueAt (i, column) {
    const at = i + this.#skipped
    const block = this.#blocks[Math.floor(at / ROWS)]
    return block
      ? block.valueAt(at % ROWS, column)
      : this.#cells[(at % ROWS) * this.#width + column]
  }

  /**
   * Values of a column from a given row on. Rows in which the value is absent are left out.
   * @param {number} column
   * @param {number} from first row; 0 is the oldest
   * @returns {{ times: number[], values: number[] }}
   */
  pointsFrom (column, from) {
    /** @type {{ times: number[], values: number[] }} */
    const points = { times: [], values: [] }
    const first = from + this.#skipped
    for (let b = Math.floor(first / ROWS); b < this.#blocks.length; b++) {
      this.#blocks[b].addTo(points, column, Math.max(0, first - b * ROWS))
    }
    for (let i = Math.max(0, first - this.#blocks.length * ROWS); i < this.#open; i++) {
      add(points, this.#times[i], this.#cells[i * this.#width + column])
    }
    return points
  }
}

/**
 * @param {{ times: number[], values: number[] }} points
 * @param {number} time
 * @param {number} value
 */
function add ({ times, values }, time, value) {
  if (Number.isNaN(value)) return
  times.push(time)
  values.push(value)
}

/** A block of rows, column by column. */
class Packed {
  /** Times, then the first number of each column, then the columns in double precision. */
  doubles
  #singles
  /**
   * Start of each column: an index into #singles. If the index is not below the length of #singles,
   * subtract this length to get an index into the doubles.
   */
  #starts

  /**
   * @param {Float64Array} times
   * @param {Float64Array} cells row after row
   * @param {number} width
   */
  constructor (times, cells, width) {
    const firsts = new Float64Array(width)
    const starts = this.#starts = new Int16Array(width).fill(CONSTANT)
    let singles = 0
    /** @type {number[]} */
    const wide = []
    for (let c = 0; c < width; c++) {
      firsts[c] = firstOf(cells, width, c)
      const form = formOf(cells, width, c, firsts[c])
      if (form === 'double') wide.push(c)
      if (form === 'single') starts[c] = ROWS * singles++
    }
    this.#singles = new Float32Array(ROWS * singles)
    this.doubles = new Float64Array(ROWS + width + ROWS * wide.length)
    this.doubles.set(times)
    this.doubles.set(firsts, ROWS)
    wide.forEach((c, i) => { starts[c] = this.#singles.length + ROWS + width + ROWS * i })
    for (let c = 0; c < width; c++) {
      if (starts[c] === CONSTANT) continue
      for (let i = 0; i < ROWS; i++) {
        const value = cells[i * width + c]
        if (starts[c] < this.#singles.length) this.#singles[starts[c] + i] = value - firsts[c]
        else this.doubles[starts[c] - this.#singles.length + i] = value
      }
    }
  }

  /**
   * @param {{ times: number[], values: number[] }} points
   * @param {number} column
   * @param {number} from first row
   */
  addTo ({ times, values }, column, from) {
    const { doubles } = this
    const singles = this.#singles
    const start = this.#starts[column]
    const first = doubles[ROWS + column]
    // Most columns of a block are constant or absent.
    if (start === CONSTANT) {
      if (Number.isNaN(first)) return
      for (let i = from; i < ROWS; i++) {
        times.push(doubles[i])
        values.push(first)
      }
      return
    }
    const isSingle = start < singles.length
    const numbers = isSingle ? singles : doubles
    const at = isSingle ? start : start - singles.length
    for (let i = from; i < ROWS; i++) {
      const value = isSingle ? first + numbers[at + i] : numbers[at + i]
      if (Number.isNaN(value)) continue
      times.push(doubles[i])
      values.push(value)
    }
  }

  /**
   * @param {number} i row
   * @param {number} column
   */
  valueAt (i, column) {
    const start = this.#starts[column]
    const first = this.doubles[ROWS + column]
    if (start === CONSTANT) return first
    const at = start + i
    return start < this.#singles.length
      ? first + this.#singles[at]
      : this.doubles[at - this.#singles.length]
  }
}

/**
 * @param {Float64Array} cells
 * @param {number} width
 * @param {number} column
 * @returns {number} first value of the column; NaN if it is absent in the whole block
 */
function firstOf (cells, width, column) {
  for (let at = column; at < cells.length; at += width) {
    if (!Number.isNaN(cells[at])) return cells[at]
  }
  return NaN
}

/**
 * @param {Float64Array} cells
 * @param {number} width
 * @param {number} column
 * @param {number} first
 * @returns {'constant' | 'single' | 'double'} the smallest form that restores each number exactly
 */
function formOf (cells, width, column, first) {
  let isConstant = true
  for (let at = column; at < cells.length; at += width) {
    const value = cells[at]
    if (Object.is(value, first)) continue
    isConstant = false
    if (!Number.isNaN(value) && !Object.is(first + Math.fround(value - first), value)) {
      return 'double'
    }
  }
  return isConstant ? 'constant' : 'single'
}

module.exports = { PackedColumns, ROWS }

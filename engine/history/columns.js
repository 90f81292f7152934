'use strict'

const { firstSince } = require('./first-since')

/**
 * A bounded table of numbers over time that overwrites its oldest rows. All columns share one time
 * column. The table starts small and doubles up to its capacity, so that a target that lives for
 * ten seconds does not cost the memory of a day.
 */
class Columns {
  #capacity
  #width
  #allocated
  #times
  #Cells
  /** Numbers, row after row, because rows are written and read as a whole. */
  #cells
  #start = 0
  #length = 0

  /**
   * @param {object} size
   * @param {number} size.capacity rows kept
   * @param {number} size.width columns
   * @param {boolean} [size.narrow] single precision: 24 bits, which is 1 part in 16 million
   */
  constructor ({ capacity, width, narrow = false }) {
    this.#capacity = capacity
    this.#width = width
    this.#allocated = Math.min(32, capacity)
    this.#times = new Float64Array(this.#allocated)
    this.#Cells = narrow ? Float32Array : Float64Array
    this.#cells = new this.#Cells(this.#allocated * width)
  }

  /** Rows held now. */
  get length () {
    return this.#length
  }

  /**
   * @param {number} time seconds; not earlier than the newest row
   * @param {ArrayLike<number>} row one number per column, NaN if absent
   */
  append (time, row) {
    if (this.#length === this.#allocated && this.#allocated < this.#capacity) this.#grow()
    if (this.#length === this.#allocated) {
      this.#start = (this.#start + 1) % this.#allocated
      this.#length--
    }
    this.#write(this.#length++, time, row)
  }

  /**
   * Overwrites the newest row.
   * @param {number} time
   * @param {ArrayLike<number>} row
   */
  replaceLast (time, row) {
    this.#write(this.#length - 1, time, row)
  }

  /** @param {number} i 0 is the oldest row */
  timeAt (i) {
    return this.#times[this.#at(i)]
  }

  /**
   * @param {number} time
   * @returns {number} index of the oldest row at or after this time; length if there is none
   */
  firstSince (time) {
    return firstSince(this, time)
  }

  /**
   * @param {number} i 0 is the oldest row
   * @param {number} column
   * @returns {number} NaN if the number was absent
   */
  valueAt (i, column) {
    return this.#cells[this.#at(i) * this.#width + column]
  }

  /**
   * Values of a column from a given row on. Rows in which the value is absent are left out.
   * @param {number} column
   * @param {number} from first row; 0 is the oldest
   * @returns {{ times: number[], values: number[] }}
   */
  pointsFrom (column, from) {
    // Both arrays are created at their largest possible length, because growing an array to 500
    // numbers takes four times as long.
    const length = this.#length - from
    const [times, values] = [new Array(length), new Array(length)]
    let present = 0
    let at = this.#at(from)
    for (let left = length; left > 0; left--) {
      const value = this.#cells[at * this.#width + column]
      if (!Number.isNaN(value)) {
        times[present] = this.#times[at]
        values[present++] = value
      }
      if (++at === this.#allocated) at = 0
    }
    times.length = values.length = present
    return { times, values }
  }

  /**
   * Place of a row. It is computed without a division, which would take longer than all the rest:
   * long histories are read row by row.
   * @param {number} i 0 is the oldest row
   */
  #at (i) {
    const at = this.#start + i
    return at < this.#allocated ? at : at - this.#allocated
  }

  /**
   * @param {number} i
   * @param {number} time
   * @param {ArrayLike<number>} row
   */
  #write (i, time, row) {
    const at = this.#at(i)
    this.#times[at] = time
    this.#cells.set(row, at * this.#width)
  }

  #grow () {
    // The table grows only before it first overwrites rows, so #start is 0 and the rows are in
    // order.
    this.#allocated = Math.min(this.#allocated * 2, this.#capacity)
    const times = new Float64Array(this.#allocated)
    const cells = new this.#Cells(this.#allocated * this.#width)
    times.set(this.#times)
    cells.set(this.#cells)
    this.#times = times
    this.#cells = cells
  }
}

module.exports = { Columns }

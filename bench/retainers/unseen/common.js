'use strict'

const v8 = require('node:v8')

/**
 * Leaks twice, and writes a heap snapshot after each time, to the two files of the command line.
 * @param {(n: number) => void} step
 * @param {number} count number of steps each time
 */
exports.run = (step, count) => {
  let n = 0
  const leak = () => { for (let i = 0; i < count; i++) step(n++) }
  const [, , first, second] = process.argv
  leak()
  setTimeout(() => {
    v8.writeHeapSnapshot(first)
    leak()
    setTimeout(() => {
      v8.writeHeapSnapshot(second)
      process.exit()
    }, 50)
  }, 50)
}

/**
 * @param {number} n
 * @param {number} count
 * @returns {number[]} objects as large as rows of a table
 */
exports.numbers = (n, count) => Array.from({ length: count }, (_, i) => i + n / 3)

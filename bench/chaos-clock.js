'use strict'

/**
 * Preloaded into an exporter: shifts its wall clock by the milliseconds in the file
 * MEMWATCH_CHAOS_CLOCK, at every change of the file.
 */

const fs = require('node:fs')
const file = /** @type {string} */ (process.env.MEMWATCH_CHAOS_CLOCK)
delete process.env.MEMWATCH_CHAOS_CLOCK
const real = Date.now
let offsetMs = 0
const read = () => {
  try {
    offsetMs = Number(fs.readFileSync(file, 'utf8')) || 0
  } catch {} // The file is not written yet.
}
read()
setInterval(read, 200).unref()
Date.now = () => real() + offsetMs

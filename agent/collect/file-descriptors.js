'use strict'

const fs = require('node:fs')

/** Counting takes time in proportion to what is open: not every frame. */
const EVERY_FRAMES = 5

/** @returns {import('./collector').Collector} */
function fileDescriptors () {
  let closed = process.platform !== 'linux'
  /** @type {number | undefined} */
  let most
  return {
    fields: ['openFileDescriptors', 'maxFileDescriptors'],
    read (values, { count }) {
      if (closed || count % EVERY_FRAMES !== 0) return
      try {
        values.openFileDescriptors = fs.readdirSync('/proc/self/fd').length - 1 // less the one that reads the folder
        most ??= Number(/^Max open files\s+(\d+)/m.exec(fs.readFileSync('/proc/self/limits', 'latin1'))?.[1])
        if (most > 0) values.maxFileDescriptors = most
      } catch {
        closed = true
      }
    }
  }
}

module.exports = { fileDescriptors }

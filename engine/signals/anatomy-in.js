'use strict'

const { anatomyOf } = require('../memory/anatomy')

/**
 * Where the memory of a target's process is, as it stands at one moment; of a worker nothing but
 * its heap is known.
 * @param {import('../history/window').Window} window
 * @returns {import('../memory/anatomy').Anatomy | null} null without RSS, and of a worker
 */
const anatomyIn = window => window.once('anatomy', () => {
  const { values, workers, scan, hello: { allocator } } = window
  return anatomyOf({ values, workers, scan, allocator })
})

module.exports = { anatomyIn }

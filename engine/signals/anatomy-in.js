'use strict'

const { anatomyOf } = require('../memory/anatomy')

/**
 * RSS breakdown of a target at one moment. Workers have no breakdown: only their heap is known.
 * @param {import('../history/window').Window} window
 * @returns {import('../memory/anatomy').Anatomy | null} null without RSS, and for a worker
 */
const anatomyIn = window => window.once('anatomy', () => {
  const { values, workers, scan, hello: { allocator } } = window
  return anatomyOf({ values, workers, scan, allocator })
})

module.exports = { anatomyIn }

'use strict'

const { listActiveResources } = require('../primordials')
const { KEY } = require('../protocol/text-rules')

/**
 * Interval of readings, and their place in it: listing takes time in proportion to the active
 * resources, and expensive readings run in different frames.
 */
const EVERY_FRAMES = 5
const TURN = 3

/**
 * Resources that keep the event loop alive, by type. The agent's own timers and socket are unref'd,
 * and not among them.
 * @returns {import('./collector').Collector}
 */
function resources () {
  let begun = false
  return {
    fields: ['resources'],
    read (values, { count }) {
      if (!listActiveResources || (begun && count % EVERY_FRAMES !== TURN)) return
      begun = true
      /** @type {Record<string, number>} */
      const counts = Object.create(null)
      for (const type of listActiveResources()) counts[type] = (counts[type] ?? 0) + 1
      // One name that the exporter rejects would cost the whole frame.
      for (const type in counts) if (!KEY.test(type)) delete counts[type]
      values.resources = counts
    }
  }
}

module.exports = { resources }

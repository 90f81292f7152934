'use strict'

/** Listing takes time in proportion to what is active: not every frame. */
const EVERY_FRAMES = 5

/**
 * What keeps the event loop alive, by type. The agent's own timers and socket are unref'd, so they are not among them.
 * @returns {import('./collector').Collector}
 */
function resources () {
  const list = /** @type {{ getActiveResourcesInfo?: () => string[] }} */ (process).getActiveResourcesInfo
  return {
    fields: ['resources'],
    read (values, { count }) {
      if (!list || count % EVERY_FRAMES !== 0) return
      /** @type {Record<string, number>} */
      const counts = Object.create(null)
      for (const type of list.call(process)) counts[type] = (counts[type] ?? 0) + 1
      values.resources = counts
    }
  }
}

module.exports = { resources }

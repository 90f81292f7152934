'use strict'

const { eventLoopUtilization, nodeTiming } = require('../primordials')

/** @returns {number | undefined} turns of the event loop so far, where Node tells */
const iterations = () => nodeTiming.uvMetricsInfo?.loopCount

/** Time the loop was active and idle, and its turns. @returns {import('./collector').Collector} */
function eventLoop () {
  return {
    fields: ['eventLoopActiveSeconds', 'eventLoopIdleSeconds', 'eventLoopIterations'],
    read (values) {
      const { active, idle } = eventLoopUtilization()
      values.eventLoopActiveSeconds = active / 1000
      values.eventLoopIdleSeconds = idle / 1000
      const turns = iterations()
      if (turns !== undefined) values.eventLoopIterations = turns
    }
  }
}

module.exports = { eventLoop, iterations }

'use strict'

const { eventLoopUtilization, nodeTiming } = require('../primordials')

/** @returns {number | undefined} turns of the event loop so far, where Node reports them */
const iterations = () => nodeTiming.uvMetricsInfo?.loopCount

/** Active and idle time of the loop, and its turns. @returns {import('./collector').Collector} */
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

'use strict'

const { eventLoopUtilization, nodeTiming } = require('../primordials')

/** @returns {number | undefined} turns of the event loop so far, where Node reports them */
const iterations = () => nodeTiming.uvMetricsInfo?.loopCount

/** Time, turns and events of the loop. @returns {import('./collector').Collector} */
function eventLoop () {
  return {
    fields: [
      'eventLoopActiveSeconds', 'eventLoopIdleSeconds', 'eventLoopIterations', 'eventLoopEvents'
    ],
    read (values) {
      const { active, idle } = eventLoopUtilization()
      values.eventLoopActiveSeconds = active / 1000
      values.eventLoopIdleSeconds = idle / 1000
      const counts = nodeTiming.uvMetricsInfo
      if (!counts) return
      values.eventLoopIterations = counts.loopCount
      values.eventLoopEvents = counts.events
    }
  }
}

module.exports = { eventLoop, iterations }

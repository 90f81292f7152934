'use strict'

// The agent, with the CPU time of its timers' callbacks. The agent captures the timer functions
// when it loads, so this file first replaces them with functions that measure.
const timers = require('node:timers')
const { offerMeasurement } = require('../measurement')

let ownMicros = 0
const { setTimeout, setInterval, setImmediate } = timers
for (const [name, original] of Object.entries({ setTimeout, setInterval, setImmediate })) {
  const measuring = (/** @type {() => void} */ callback, /** @type {number} */ ms) =>
    original(() => {
      const before = process.cpuUsage()
      callback()
      const { user, system } = process.cpuUsage(before)
      ownMicros += user + system
    }, ms)
  Object.assign(timers, { [name]: measuring })
}
require('../../../agent/primordials')
Object.assign(timers, { setTimeout, setInterval, setImmediate })
require('../../../agent')
offerMeasurement({ ownMicros: () => ownMicros })

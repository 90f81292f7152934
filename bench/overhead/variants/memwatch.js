'use strict'

// The agent. It keeps the timers that exist when it loads, so it gets ones that measure its turns.
const timers = require('node:timers')
const { offerSwitch } = require('../switch')

let ownMicros = 0
const { setTimeout, setInterval, setImmediate } = timers
for (const [name, original] of Object.entries({ setTimeout, setInterval, setImmediate })) {
  const measuring = (/** @type {() => void} */ work, /** @type {number} */ ms) =>
    original(() => {
      const before = process.cpuUsage()
      work()
      const { user, system } = process.cpuUsage(before)
      ownMicros += user + system
    }, ms)
  Object.assign(timers, { [name]: measuring })
}
require('../../../agent/primordials')
Object.assign(timers, { setTimeout, setInterval, setImmediate })
require('../../../agent')
offerSwitch({ ownMicros: () => ownMicros })

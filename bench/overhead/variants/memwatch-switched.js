'use strict'

// The agent, which can be turned off and on: without hooks, and with timers that do nothing. While
// it is off, only its objects and its socket remain. It refuses the profiles that the exporter
// starts by itself. The agent captures the timer functions when it loads, so this file first
// replaces them.
process.env.MEMWATCH_CAPTURES = 'off'
const timers = require('node:timers')
const { offerMeasurement } = require('../measurement')

let isOn = true
/** Callbacks of one-shot timers that ended while the agent was off. @type {(() => void)[]} */
const held = []
const { setTimeout, setInterval } = timers
Object.assign(timers, {
  setTimeout: (/** @type {() => void} */ callback, /** @type {number} */ ms) =>
    setTimeout(() => (isOn ? callback() : held.push(callback)), ms),
  setInterval: (/** @type {() => void} */ callback, /** @type {number} */ ms) =>
    setInterval(() => { if (isOn) callback() }, ms)
})
require('../../../agent/primordials')
Object.assign(timers, { setTimeout, setInterval })

const addon = require('../../../agent/addon')
const { loadAddon } = addon
/** @type {(() => void)[]} */
const restarts = []
/** @type {(() => void)[]} */
const stops = []
addon.loadAddon = () => ({ ...loadAddon(), countGcs: () => countAgain(loadAddon().countGcs) })

/** Positions in the array of `take`: major GCs so far, and up to the reading of the live heap. */
const MAJORS = Object.freeze([1, 3])

/**
 * Counts GCs with a new counter after each pause. Major GCs are counted on from the last counter.
 * @param {import('@memwatch/allocator').countGcs} countGcs
 * @returns {import('@memwatch/allocator').GcHooks | undefined}
 */
function countAgain (countGcs) {
  let counter = countGcs()
  if (!counter) return undefined
  const last = new Float64Array(counter.takenLength)
  const earlier = [0, 0]
  let spaces = 0
  stops.push(() => {
    counter?.take(last)
    MAJORS.forEach((at, i) => { earlier[i] += last[at] })
    counter?.stop()
  })
  restarts.push(() => {
    counter = countGcs()
    counter?.readLiveHeap(spaces)
  })
  return {
    takenLength: counter.takenLength,
    take (out) {
      counter?.take(out)
      MAJORS.forEach((at, i) => { if (out[at] > 0) out[at] += earlier[i] })
    },
    readLiveHeap: bits => counter?.readLiveHeap(spaces = bits),
    stop: () => counter?.stop()
  }
}

require('../../../agent')
offerMeasurement({
  on () {
    if (isOn) return
    isOn = true
    for (const restart of restarts) restart()
    for (const callback of held.splice(0)) callback()
  },
  off () {
    if (!isOn) return
    isOn = false
    for (const stop of stops) stop()
  }
})

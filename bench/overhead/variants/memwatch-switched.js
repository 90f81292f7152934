'use strict'

// The agent, which can be turned off and on many times a second. While it is off, V8 has no hooks,
// and the callbacks of its timers wait until it is on. Only its objects and its socket remain. It
// refuses the profiles that the exporter starts by itself. The agent captures the timer functions
// when it loads, so this file first replaces them.
process.env.MEMWATCH_CAPTURES = 'off'
const timers = require('node:timers')
const { offerMeasurement } = require('../measurement')

let isOn = true
/** Number of frames so far: the agent has one interval. */
let frames = 0
/** Callbacks that wait until the agent is on. @type {Set<() => void>} */
const held = new Set()
const { setTimeout, setInterval, setImmediate } = timers
for (const [name, original] of Object.entries({ setTimeout, setInterval, setImmediate })) {
  const holding = (/** @type {() => void} */ callback, /** @type {number} */ ms) => {
    const run = () => {
      if (!isOn) return held.add(run)
      if (name === 'setInterval') frames++
      callback()
    }
    return original(run, ms)
  }
  Object.assign(timers, { [name]: holding })
}
require('../../../agent/primordials')
Object.assign(timers, { setTimeout, setInterval, setImmediate })

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
    const waiting = [...held]
    held.clear()
    // They run within the measured slice.
    for (const run of waiting) setImmediate(run)
  },
  off () {
    if (!isOn) return
    isOn = false
    for (const stop of stops) stop()
  },
  frames: () => frames
})

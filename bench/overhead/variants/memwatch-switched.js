'use strict'

// The agent, which can be turned off and on many times a second. While it is off, V8 has no hooks,
// its clock stands still, and its timers skip their callbacks. So while it is on, it works as often
// as an agent that is never off. Only its objects and its socket remain. It refuses the profiles
// that the exporter starts by itself. The agent captures timers and clock when it loads, so this
// file first replaces them.
process.env.MEMWATCH_CAPTURES = 'off'
const timers = require('node:timers')
const { offerMeasurement } = require('../measurement')

let isOn = true
/** Number of frames so far: the agent has one interval. */
let frames = 0
/** Immediates that wait until the agent is on. @type {Set<() => void>} */
const held = new Set()
const { setTimeout, setInterval, setImmediate } = timers
/** @typedef {() => void} Callback */
Object.assign(timers, {
  setTimeout (/** @type {Callback} */ callback, /** @type {number} */ ms) {
    const timer = setTimeout(() => isOn ? callback() : timer.refresh(), ms)
    return timer
  },
  setInterval: (/** @type {Callback} */ callback, /** @type {number} */ ms) =>
    setInterval(() => {
      if (!isOn) return
      frames++
      callback()
    }, ms),
  setImmediate (/** @type {Callback} */ callback) {
    const run = () => isOn ? callback() : held.add(run)
    return setImmediate(run)
  }
})

const { hrtime } = process
const nowNs = () => {
  const [seconds, ns] = hrtime()
  return seconds * 1e9 + ns
}
/** Total time while it was off, and start of the current one. */
let offNs = 0
let offSinceNs = 0
process.hrtime = Object.assign(
  () => /** @type {[number, number]} */ ([0, (isOn ? nowNs() : offSinceNs) - offNs]),
  { bigint: hrtime.bigint }
)
require('../../../agent/primordials')
Object.assign(timers, { setTimeout, setInterval, setImmediate })
Object.assign(process, { hrtime })

const addon = require('../../../agent/addon')
const { loadAddon } = addon
/** @type {(() => void)[]} */
const restarts = []
/** @type {(() => void)[]} */
const stops = []
addon.loadAddon = () => ({ ...loadAddon(), countGcs: () => countAgain(loadAddon().countGcs) })

/** Stopped counters. V8 never collects them, because their finalizers would run in a slice. */
const stopped = []

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
    stopped.push(counter)
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
    offNs += nowNs() - offSinceNs
    for (const restart of restarts) restart()
    const waiting = [...held]
    held.clear()
    // These run within the measured slice.
    for (const run of waiting) setImmediate(run)
  },
  off () {
    if (!isOn) return
    isOn = false
    offSinceNs = nowNs()
    for (const stop of stops) stop()
  },
  frames: () => frames
})

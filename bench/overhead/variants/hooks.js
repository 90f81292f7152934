'use strict'

// V8's own GC callbacks by the addon, as the agent uses them, without the agent.
const v8 = require('node:v8')
const { countGcs } = require('../../../allocator')
const { offerMeasurement } = require('../measurement')

/** Bit mask of the old spaces, by their position: the spaces that are read after a major GC. */
const spaces = v8.getHeapSpaceStatistics().reduce(
  (bits, { space_name: name }, i) => (name.startsWith('new_') ? bits : bits | 1 << i), 0
)
/** @type {ReturnType<typeof countGcs>} */
let counter
/** Stopped counters. V8 never collects them, because their finalizers would run in a slice. */
const stopped = []
const on = () => {
  counter ??= countGcs()
  counter?.readLiveHeap(spaces)
}
on()
offerMeasurement({
  on,
  off () {
    counter?.stop()
    stopped.push(counter)
    counter = undefined
  }
})

'use strict'

// Fixed work: `node -r VARIANT work.js OBJECTS SPINS`. Each unit creates OBJECTS objects, nearly
// all of which are garbage at once, and then computes up to about a millisecond. For each number
// it is sent, it works one slice of so many units, with one unit in each turn of the loop, and
// replies with the CPU time of the process. `on` and `off` switch the variant; it replies once
// that has settled.
const { offeredSwitch } = require('./switch')

const objects = Number(process.argv[2])
const spins = Number(process.argv[3])

/** @type {object[]} */
const recent = Array(200).fill({})
let made = 0
let sum = 0

function unit () {
  for (let i = 0; i < objects; i++) recent[made++ % recent.length] = { made, text: 'row', at: [i] }
  for (let i = 0; i < spins; i++) sum = (sum * 31 + i) | 0
}

/** Turns of the loop after the last unit, in which observers are called for the last GCs. */
const LAST_TURNS = 5
/** Longer than an agent takes to start and to send its first frames. */
const SETTLED_AFTER_MS = 1300

/** @param {number} units */
function work (units) {
  const before = process.cpuUsage()
  let left = units + LAST_TURNS
  const next = () => {
    if (left > LAST_TURNS) unit()
    if (--left > 0) return setImmediate(next)
    const { user, system } = process.cpuUsage(before)
    process.send?.({ cpuMicros: user + system, sum })
  }
  next()
}

process.on('message', (/** @type {number | 'on' | 'off'} */ order) => {
  if (typeof order === 'number') return work(order)
  offeredSwitch()?.[order]()
  setTimeout(() => process.send?.(order), SETTLED_AFTER_MS)
})
process.send?.(offeredSwitch() ? 'switchable' : 'ready')

'use strict'

// Fixed work: `node -r VARIANT work.js OBJECTS SPINS`. Each unit creates OBJECTS objects, nearly
// all of which are garbage at once, and then computes up to about a millisecond. A slice is a
// number of units, with one unit in each turn of the loop. For each message `{ slices, units }` it
// runs that many slices. It replies with the CPU time of each slice, and with the measurements of
// the variant.
const { ORDER, offeredMeasurement } = require('./measurement')

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

/**
 * @param {number} units
 * @returns {Promise<number>} µs of CPU
 */
const slice = units => new Promise(resolve => {
  const before = process.cpuUsage()
  let left = units + LAST_TURNS
  const next = () => {
    if (left > LAST_TURNS) unit()
    if (--left > 0) return setImmediate(next)
    const { user, system } = process.cpuUsage(before)
    resolve(user + system)
  }
  next()
})

/**
 * @param {number} slices
 * @param {number} units
 */
async function work (slices, units) {
  const { on, off, ownMicros = () => 0, frames = () => 0 } = offeredMeasurement()
  const began = process.hrtime.bigint()
  const ownBefore = ownMicros()
  /** @type {number[]} */
  const micros = []
  /** @type {number[]} */
  const framesOf = []
  for (let i = 0; i < slices; i++) {
    if (ORDER[i % ORDER.length]) on?.()
    else off?.()
    const framesBefore = frames()
    micros.push(await slice(units))
    framesOf.push(frames() - framesBefore)
  }
  on?.()
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  process.send?.({ micros, framesOf, ownMicros: ownMicros() - ownBefore, seconds, sum })
}

process.on('message', (/** @type {{ slices: number, units: number }} */ { slices, units }) =>
  work(slices, units))
process.send?.('ready')

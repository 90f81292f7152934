'use strict'

// The app of bench/gc-hooks.js: `gc-hooks-app.js workers N`, `cost N`, or `soak`, which runs until
// it is ended.
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')
const v8 = require('node:v8')
const addon = require(`../allocator/prebuilt/${process.platform}-${process.arch}.node`)

const GCS_OF_WORKER = 5
const AT_ONCE = 4
/** Columns of a row that `take` writes; rows follow the first four numbers. */
const [FIRST_ROW, ROW_LENGTH, KIND, COUNT] = [4, 19, 0, 2]

/** @returns {number} major GCs counted by the hooks, after some forced ones */
function forceAndCount () {
  const hooks = addon.countGcs()
  const other = addon.countGcs()
  const spaces = v8.getHeapSpaceStatistics().reduce(
    (bits, { space_name: name }, i) => (name.startsWith('new_') ? bits : bits | 1 << i), 0
  )
  hooks.readLiveHeap(spaces)
  const out = new Float64Array(hooks.takenLength)
  let majors = 0
  for (let i = 0; i < GCS_OF_WORKER; i++) {
    globalThis.gc?.()
    if (i === 2) other.stop()
    hooks.take(out)
    for (let row = 0; row < out[0]; row++) {
      const at = FIRST_ROW + row * ROW_LENGTH
      if (out[at + KIND] === 4) majors += out[at + COUNT]
    }
  }
  return majors
}

/** @param {number} count */
async function workers (count) {
  let begun = 0
  let ended = 0
  let wrong = 0
  const one = (/** @type {boolean} */ isEndless) => new Promise(resolve => {
    const worker = new Worker(__filename, { workerData: { isEndless } })
    worker.on('message', majors => {
      if (majors !== GCS_OF_WORKER) wrong++
      if (isEndless) worker.terminate()
    })
    worker.on('error', () => wrong++)
    worker.on('exit', resolve)
  })
  const lane = async () => {
    while (begun < count) {
      await one(begun++ % 2 === 1)
      if (++ended % Math.ceil(count / 20) === 0) {
        process.send?.({ ended, wrong, rss: process.memoryUsage.rss() })
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  process.disconnect?.()
}

function soak () {
  /** @type {object[]} */
  const recent = Array(10).fill([])
  let made = 0
  let ends = false
  process.on('message', () => { ends = true })
  // Large arrays fill the new space with little work, so the scavenges follow closely.
  const burst = () => {
    for (let i = 0; i < 2000; i++) recent[made++ % recent.length] = new Array(1000)
    if (ends) process.exit()
    setImmediate(burst)
  }
  burst()
}

/** @param {number} count number of counters */
function cost (count) {
  for (let i = 0; i < count; i++) addon.countGcs()
  const scavenge = () => globalThis.gc?.({ type: 'minor' })
  for (let i = 0; i < 300; i++) scavenge()
  const before = performance.now()
  for (let i = 0; i < 3000; i++) scavenge()
  console.log((performance.now() - before) / 3000 * 1000)
}

if (!isMainThread) {
  parentPort?.postMessage(forceAndCount())
  if (workerData.isEndless) setInterval(() => globalThis.gc?.(), 1)
} else if (process.argv[2] === 'workers') workers(Number(process.argv[3]))
else if (process.argv[2] === 'cost') cost(Number(process.argv[3]))
else soak()

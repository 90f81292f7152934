'use strict'

const { PerformanceObserver } = require('../primordials')

/** @typedef {import('node:perf_hooks').PerformanceEntry[]} Entries */

/**
 * @param {import('node:perf_hooks').PerformanceEntry} entry type gc
 * @returns {{ kind?: number, flags?: number }}
 */
const readDetail = entry => /** @type {{ detail?: object }} */ (entry).detail ?? entry

/** Observes GCs from now on. Entries wait here some milliseconds, until their counter is loaded. */
function gcObserver () {
  /** @type {Entries[]} */
  const waiting = []
  /** @param {Entries} entries */
  let deliver = entries => { waiting.push(entries) }
  const observer = new PerformanceObserver(list => {
    try {
      deliver(list.getEntries())
    } catch {} // Node.js calls this from an immediate: an error would reach the app
  })
  const connect = () => observer.observe({ type: 'gc', buffered: false })
  connect()
  return {
    connect,
    disconnect: () => observer.disconnect(),
    /** Delivers all batches, the waiting ones first. @param {(entries: Entries) => void} receive */
    deliverTo (receive) {
      deliver = receive
      for (const entries of waiting.splice(0)) receive(entries)
    },
    /** Undelivered entries. @returns {Entries} */
    takeRecords: () => observer.takeRecords()
  }
}

module.exports = { readDetail, gcObserver }

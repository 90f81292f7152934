'use strict'

/** @typedef {import('./app-run').AppRun} AppRun */

const TICK_MS = 10

/**
 * Runs jobs at a fixed rate, whether or not earlier ones are done, as a queue feeds a worker. At
 * most `atOnce` run at a time; jobs due meanwhile are dropped.
 * @param {AppRun} run counts finished jobs, and multiplies the rate
 * @param {object} work
 * @param {number} work.perSecond
 * @param {(number: number) => Promise<unknown> | unknown} work.job
 * @param {number} [work.atOnce]
 */
function withJobs (run, { perSecond, job, atOnce = 64 }) {
  let due = 0
  let running = 0
  let number = 0
  let before = performance.now()
  setInterval(() => {
    const now = performance.now()
    due += (now - before) / 1000 * perSecond * run.rate
    before = now
    for (; due >= 1; due--) if (running < atOnce) start()
  }, TICK_MS)

  async function start () {
    running++
    await job(number++)
    running--
    run.served()
  }
}

module.exports = { withJobs }

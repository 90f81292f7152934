'use strict'

// Every twenty seconds, a report export builds some thirty megabytes of rows in slices, sends them
// and drops them. Between the reports it is idle.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const run = appRun({ work: 'reports' })

async function reports () {
  for (let report = 0; ; report++) {
    /** @type {string[]} */
    const pages = []
    for (let page = 0; page < 120; page++) {
      pages.push(
        Array.from(
          { length: 1500 },
          (_, i) => `${report};${page};${i};${(i * 7919) % 1000};some text in a cell`
        ).join('\n')
      )
      await wait(30)
    }
    let bytes = 0
    for (const page of pages) {
      bytes += Buffer.byteLength(page)
      await wait(5)
    }
    run.served(bytes > 0 ? 1 : 0)
    await wait(14_000)
  }
}
reports()

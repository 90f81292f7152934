'use strict'

// A log pipeline runs a filter script for each open file in a context of its own. It retains the
// script's error for a report, and with it the context. `--fixed` retains only the message.
const { Readable, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const vm = require('node:vm')
const { appRun } = require('../app-run')

/** @type {unknown[]} */
const errors = []
const run = appRun({ work: 'files', figures: () => ({ errors: errors.length }) })
const script = new vm.Script('lines.filter(line => line.includes("late")); missing()')

async function * files () {
  for (let number = 0; ; number++) {
    yield Array.from(
      { length: 900 },
      (_, i) => `file ${number} line ${i} ${i % 7 ? 'in time' : 'late'}`
    )
    await wait(180 / run.rate)
  }
}

pipeline(
  Readable.from(files()),
  new Writable({
    objectMode: true,
    write (lines, _, done) {
      try {
        script.runInContext(vm.createContext({ lines }))
      } catch (error) {
        errors.push(run.fixed ? String(/** @type {Error} */ (error).message) : error)
      }
      run.served()
      done()
    }
  }),
  () => {}
)

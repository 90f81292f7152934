'use strict'

// A validator in a stream uses a regular expression that backtracks for a while on one of every
// five hundred lines. `--fixed` uses an expression that cannot backtrack.
const { Readable, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const BACKTRACKING = /^(\w+\s?)*$/
const LINEAR = /^[\w\s]*$/
const run = appRun({ work: 'lines', figures: () => ({ invalid }) })
let invalid = 0
let number = 0

async function * lines () {
  for (;;) {
    for (let i = 0; i < 10; i++) {
      yield ++number % 500 === 0 ? `${'a'.repeat(26)}!` : `line ${number} is fine`
    }
    await wait(20 / run.rate)
  }
}

const check = new Writable({
  objectMode: true,
  write (line, _, done) {
    // On a line without a match the expression tries all ways to split its words.
    if (!(run.fixed ? LINEAR : BACKTRACKING).test(line)) invalid++
    run.served()
    done()
  }
})
pipeline(Readable.from(lines()), check, () => {})

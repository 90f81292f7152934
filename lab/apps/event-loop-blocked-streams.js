'use strict'

// A validator in a stream: every few hundred lines one makes its regular expression backtrack for a while. `--fixed` uses
// an expression that cannot.
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
    for (let i = 0; i < 10; i++) yield ++number % 250 === 0 ? 'a long line of words that ends with!' : `line ${number} is fine`
    await wait(20 / run.rate)
  }
}

const check = new Writable({
  objectMode: true,
  write (line, _, done) {
    // Four times the work at the end: the expression tries all ways to split the words.
    if (!(run.fixed ? LINEAR : BACKTRACKING).test(line.slice(0, 26) + (line.endsWith('!') ? '!' : ''))) invalid++
    run.served()
    done()
  }
})
pipeline(Readable.from(lines()), check, () => {})

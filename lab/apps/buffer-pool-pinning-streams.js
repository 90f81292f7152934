'use strict'

// A protocol parser reads packets that were created by Buffer.from. It keeps the token of each
// packet as a slice until its session ends a minute later. `--fixed` copies the token.
const { Transform, Writable, Readable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const SESSIONS = 50_000
const run = appRun({ work: 'frames', figures: () => ({ sessions: tokens.length }) })
/** @type {Buffer[]} a ring */
const tokens = []
let next = 0

async function * packets () {
  for (;;) {
    for (let i = 0; i < 12; i++) {
      yield Buffer.from(`token-${String(next++).padStart(10, '0')};${'payload '.repeat(400)}`)
    }
    await wait(16 / run.rate)
  }
}

const parser = new Transform({
  readableObjectMode: true,
  transform (packet, _, done) {
    const token = packet.subarray(0, 16)
    tokens[next % SESSIONS] = run.fixed ? Buffer.allocUnsafeSlow(16).fill(token) : token
    done(null, { length: packet.length })
  }
})
pipeline(
  Readable.from(packets()),
  parser,
  new Writable({
    objectMode: true,
    write (_, __, done) {
      run.served()
      done()
    }
  }),
  () => {}
)

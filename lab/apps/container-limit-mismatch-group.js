'use strict'

// A stream processor in a group of its own below the one that has the limit, as a process of a
// systemd slice or of a pod with a pod-level limit has it: Node.js looks at its own group only and
// sizes the heap for the whole machine.
const { Readable, Transform, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const run = appRun({ work: 'records' })
let next = 0
async function * records () {
  for (;;) {
    for (let i = 0; i < 40; i++) {
      yield { id: next++, text: `record ${next}`, parts: [next % 3, next % 5] }
    }
    await wait(10 / run.rate)
  }
}
const enrich = new Transform({
  objectMode: true,
  transform: (record, _, done) =>
    done(null, { ...record, key: `${record.text}/${record.parts.join('-')}` })
})
pipeline(
  Readable.from(records()),
  enrich,
  new Writable({
    objectMode: true,
    write (_, __, done) {
      run.served()
      done()
    }
  }),
  () => {}
)

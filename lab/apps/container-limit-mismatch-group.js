'use strict'

// A stream processor runs in a cgroup whose parent has the limit, as in a systemd slice or in a pod
// with a pod-level limit. Node.js reads only its own cgroup, and sizes the heap for the whole
// machine.
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

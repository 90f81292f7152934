'use strict'

// An enricher looks up records from a stream in a dictionary of relations. The dictionary has more
// than a million linked objects in memory, and is loaded once.
const { Readable, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const ENTRIES = 1_400_000
/** @typedef {{ of: Entry | null, also: (Entry | null)[], rank: number }} Entry */
/** @type {Entry[]} */
const dictionary = []
for (let i = 0; i < ENTRIES; i++) {
  const of = dictionary[i >> 1] ?? null
  dictionary.push({
    of,
    also: [of, dictionary[i >> 3] ?? null, dictionary[i - 1] ?? null],
    rank: i % 100
  })
}

const run = appRun({ work: 'records', figures: () => ({ entries: dictionary.length }) })
async function * records () {
  for (let number = 0; ; number++) {
    yield { number, entry: dictionary[(number * 7919) % ENTRIES] }
    if (number % 20 === 0) await wait(10 / run.rate)
  }
}
pipeline(Readable.from(records()), new Writable({
  objectMode: true,
  write ({ entry }, _, done) {
    let rank = 0
    for (let at = entry; at; at = at.of) rank += at.rank
    run.served(rank >= 0 ? 1 : 0)
    done()
  }
}), () => {})

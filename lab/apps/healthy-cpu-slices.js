'use strict'

// A pricing engine computes for more than half of the time, in slices of fifteen milliseconds with
// a pause between them: the event loop is busy, but responds in time.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const SLICE_MS = 15
const run = appRun()
let prices = 0

function slice () {
  const ends = performance.now() + SLICE_MS
  while (performance.now() < ends) {
    for (let i = 0; i < 1000; i++) prices = (prices * 31 + i) % 1_000_003
  }
  setTimeout(slice, 10)
}
slice()
const server = http.createServer((request, response) => sendJson(response, { price: prices }))
withLoad(server, run, {
  phases: [{ perSecond: 30 }],
  requests: [{ method: 'GET', path: '/price/{key}' }]
})

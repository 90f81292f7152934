'use strict'

// An API has heavy traffic after its start, as from the smoke test of a deployment, and then hardly
// any. The burst made the new space grow to its limit; without GCs V8 returns nothing.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const run = appRun()
const server = http.createServer(async (request, response) => {
  const rows = Array.from({ length: 1500 }, (_, i) => ({
    i,
    text: `row ${i}`,
    cells: [i, i % 7, i % 11]
  }))
  await new Promise((resolve) => setTimeout(resolve, 120))
  sendJson(response, rows.slice(0, 30))
})

withLoad(server, run, {
  phases: [{ perSecond: 400, seconds: 15 }, { perSecond: 0.1 }],
  requests: [{ method: 'GET', path: '/rows/{key}' }],
  inFlight: 400
})

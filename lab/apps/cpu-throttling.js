'use strict'

// A product page renders in waves: twenty items are requested within 0.16 s, and each takes a few
// milliseconds of computation. With half a core a wave uses up the CPU quota of its periods, and
// its rest waits for the next ones. On average the app needs less than its quota.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const ROUNDS = 1_500_000
const run = appRun()
const server = http.createServer((request, response) => {
  let total = 0
  for (let i = 0; i < ROUNDS; i++) total = (total * 31 + i) % 1_000_003
  sendJson(response, { total })
})
withLoad(server, run, {
  phases: [{ perSecond: 20 / 0.16, seconds: 0.16 }, { perSecond: 0.001, seconds: 0.14 }],
  repeat: true,
  requests: [{ method: 'GET', path: '/item/{key}' }],
  inFlight: 64
})

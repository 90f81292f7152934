'use strict'

// A product page renders in waves: a list of twenty items is requested at once, and each item takes
// a few milliseconds of computation. With half a core a wave uses up the CPU quota of its period,
// and its rest waits for the next periods. On average the app needs less than its quota.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const WAVE = 20
const ROUNDS = 1_500_000
const run = appRun()
const server = http.createServer((request, response) => {
  let total = 0
  for (let i = 0; i < ROUNDS; i++) total = (total * 31 + i) % 1_000_003
  sendJson(response, { total })
})
// A wave every 300 ms: the rate of a phase is a number of requests per second.
withLoad(server, run, {
  phases: [{ perSecond: 50 * WAVE, seconds: 0.02 }, { perSecond: 0.001, seconds: 0.28 }],
  repeat: true,
  requests: [{ method: 'GET', path: '/item/{key}' }],
  inFlight: 64
})

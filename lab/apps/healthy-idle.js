'use strict'

// An idle server gets one request every ten seconds, from its health check. Its rare GCs give few
// readings of its memory, and it has no problem.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const run = appRun()
const server = http.createServer((request, response) => {
  if (request.url !== '/health') return sendJson(response, { error: 'not found' }, 404)
  sendJson(response, { status: 'ok', upSeconds: Math.round(process.uptime()) })
})

withLoad(server, run, {
  phases: [{ perSecond: 0.1 }],
  requests: [{ method: 'GET', path: '/health' }]
})

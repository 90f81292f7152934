'use strict'

// A small API runs on a large machine with a high heap limit. V8 needs no major GC for minutes, so
// used heap and RSS rise slowly. The rise is only garbage, and memory is not short.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @type {Map<string, object>} sessions of the last half minute */
const sessions = new Map()
const server = http.createServer((request, response) => {
  const id = `${Date.now()}-${Math.random()}`
  const session = {
    id,
    steps: Array.from({ length: 12 }, (_, i) => ({ i, text: `step ${i} of ${id}` }))
  }
  sessions.set(id, session)
  if (sessions.size > 1500) sessions.delete(String(sessions.keys().next().value))
  sendJson(response, session)
})

withLoad(server, appRun({ figures: () => ({ sessions: sessions.size }) }), {
  phases: [{ perSecond: 100 }],
  requests: [{ method: 'GET', path: '/start/{key}' }]
})

'use strict'

// The load grows for forty seconds, as in the morning, and then stays constant. The app holds every
// chat request open for a second, so the live heap grows with the number of open requests, and
// stops growing with it.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { readJson, sendJson } = require('../json')

const HOLD_MS = 1000

/** @typedef {{ room: string, text: string, history: { at: number, text: string }[] }} Waiting */

/** @type {Set<Waiting>} */
const online = new Set()

const run = appRun({ figures: () => ({ online: online.size }) })
const server = http.createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/messages') {
    return sendJson(response, { error: 'not found' }, 404)
  }
  const { room, text } = await readJson(request)
  const waiting = {
    room,
    text,
    history: Array.from({ length: 350 }, (_, i) => ({ at: Date.now() - i, text: `${text} ${i}` }))
  }
  online.add(waiting)
  setTimeout(() => {
    online.delete(waiting)
    sendJson(response, { room, last: waiting.history.slice(0, 5) })
  }, HOLD_MS)
})

withLoad(server, run, {
  phases: [{ seconds: 40, perSecond: 200, from: 0.1 }, { perSecond: 200 }],
  requests: [
    { method: 'POST', path: '/messages', body: '{"room":"room-{key}","text":"good morning"}' }
  ],
  keys: 50,
  inFlight: 400
})

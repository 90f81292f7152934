'use strict'

// An API opens a connection to its backend for each tenth request, uses the answer, and never ends
// the connection. `--fixed` ends the connection.
const http = require('node:http')
const net = require('node:net')
const { appRun } = require('../app-run')
const { startBackend } = require('../backend')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @type {Set<net.Socket>} open connections, as in the registry of a driver */
const open = new Set()
const run = appRun({ figures: () => ({ open: open.size }) })
const backend = startBackend(run)
let count = 0

const server = http.createServer(async (request, response) => {
  if (count++ % 10 !== 0) return sendJson(response, { ok: true })
  const socket = net.connect(await backend, '127.0.0.1')
  open.add(socket)
  socket.on('error', () => {}).on('close', () => open.delete(socket))
  socket.once('data', () => {
    sendJson(response, { ok: true })
    if (run.fixed) socket.destroy()
  })
  socket.write('ping')
})

withLoad(server, run, {
  phases: [{ perSecond: 60 }],
  requests: [{ method: 'GET', path: '/quotes/{key}' }]
})

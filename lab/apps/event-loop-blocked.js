'use strict'

// A login service derives keys with pbkdf2Sync: each login blocks the event loop for a quarter of a
// second. `--fixed` derives keys in the thread pool.
const http = require('node:http')
const { pbkdf2, pbkdf2Sync } = require('node:crypto')
const { promisify } = require('node:util')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const ROUNDS = 500_000
const derive = promisify(pbkdf2)
const run = appRun()
const server = http.createServer(async (request, response) => {
  if (request.url !== '/login') return sendJson(response, { ok: true })
  const key = run.fixed
    ? await derive('password', 'salt', ROUNDS, 64, 'sha512')
    : pbkdf2Sync('password', 'salt', ROUNDS, 64, 'sha512')
  sendJson(response, { key: key.toString('hex', 0, 4) })
})

const page = { method: 'GET', path: '/page' }
withLoad(server, run, {
  phases: [{ perSecond: 20 }],
  requests: [{ method: 'GET', path: '/login' }, ...Array.from({ length: 9 }, () => page)],
  inFlight: 32
})

'use strict'

// A session API has a session map that never shrinks: every login adds an entry, but logout and
// expiry are missing. The live heap grows by about 120 MB a minute until the process ends at the
// heap size limit. `--rate 2` doubles the growth.
const http = require('node:http')
const { randomBytes } = require('node:crypto')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { readJson, sendJson } = require('../json')

/**
 * @typedef {{ user: string, token: string, permissions: string[], visits: { path: string, at:
 *   number }[] }} Session
 */

/** @type {Map<string, Session>} */
const sessions = new Map() // The leak: login() adds entries, and no code deletes them.

/** @param {string} user */
function login (user) {
  const token = randomBytes(16).toString('hex')
  const permissions = Array.from({ length: 12 }, (_, i) => `${user}:project-${i}:read`)
  const visits = Array.from({ length: 24 }, (_, i) => ({
    path: `/projects/${i}/${user}`,
    at: Date.now() - i
  }))
  sessions.set(token, { user, token, permissions, visits })
  return { token, expiresSeconds: 3600 }
}

const run = appRun({ figures: () => ({ sessions: sessions.size }) })
const server = http.createServer(async (request, response) => {
  if (request.method === 'POST' && request.url === '/login') {
    const { user } = await readJson(request)
    sendJson(response, login(user), 201)
  } else {
    sendJson(response, { error: 'not found' }, 404)
  }
})

withLoad(server, run, {
  phases: [{ perSecond: 400 }],
  requests: [{ method: 'POST', path: '/login', body: '{"user":"user-{key}"}' }],
  keys: 100_000
})

'use strict'

// A service accepts files of two megabytes, hashes each file and drops it at once. Each second it
// allocates more than a dozen Buffers outside the heap, and major GCs free them; the app retains
// none.
const http = require('node:http')
const { createHash } = require('node:crypto')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const run = appRun()
const server = http.createServer(async (request, response) => {
  if (request.method !== 'PUT') return sendJson(response, { error: 'not found' }, 404)
  /** @type {Buffer[]} */
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const file = Buffer.concat(chunks)
  sendJson(
    response,
    { bytes: file.length, sha256: createHash('sha256').update(file).digest('hex') },
    201
  )
})

withLoad(server, run, {
  phases: [{ perSecond: 15 }],
  requests: [{ method: 'PUT', path: '/files/{key}', bodyBytes: 2 * 2 ** 20 }]
})

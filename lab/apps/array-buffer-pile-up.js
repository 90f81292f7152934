'use strict'

// A server gathers uploads of ten megabytes with Buffer.concat and hashes them. Two copies of each
// upload wait for a late GC, because the heap itself hardly grows. `--fixed` hashes chunk by chunk
// and retains no chunk.
const http = require('node:http')
const { createHash } = require('node:crypto')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const run = appRun()
const server = http.createServer(async (request, response) => {
  if (request.method !== 'PUT') return sendJson(response, { error: 'not found' }, 404)
  const hash = createHash('md5')
  if (run.fixed) {
    for await (const chunk of request) hash.update(chunk)
  } else {
    /** @type {Buffer[]} */
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    hash.update(Buffer.concat(chunks))
  }
  sendJson(response, { md5: hash.digest('hex') }, 201)
})

withLoad(server, run, {
  phases: [{ perSecond: 60 }],
  requests: [{ method: 'PUT', path: '/files/{key}', bodyBytes: 10 * 2 ** 20 }],
  inFlight: 12
})

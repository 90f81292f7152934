'use strict'

// A gateway remembers the last 40,000 request ids to drop duplicates. An id is a slice of its
// message, and the message is a slice of Node's Buffer pool: sixteen bytes keep eight kilobytes or
// more. `--fixed` copies the id.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { readJson, sendJson } = require('../json')

const REMEMBERED = 40_000
/** @type {Buffer[]} a ring */
const ids = []
let count = 0
const run = appRun({ figures: () => ({ ids: ids.length }) })

const server = http.createServer(async (request, response) => {
  if (request.method !== 'POST') return sendJson(response, { error: 'not found' }, 404)
  const { items } = await readJson(request)
  for (let i = 0; i < 8; i++) {
    const message = Buffer.from(JSON.stringify({ i, items, padding: 'x'.repeat(3000) }))
    const id = message.subarray(0, 16)
    ids[count++ % REMEMBERED] = run.fixed ? own(id) : id
  }
  sendJson(response, { accepted: 8 }, 202)
})

/** Creates a copy that owns its memory. @param {Buffer} part */
function own (part) {
  const copy = Buffer.allocUnsafeSlow(part.length)
  part.copy(copy)
  return copy
}

withLoad(server, run, {
  phases: [{ perSecond: 80 }],
  requests: [{ method: 'POST', path: '/messages', body: '{"items":[{key},2,3]}' }]
})

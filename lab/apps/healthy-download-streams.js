'use strict'

// A download service compresses its answers and ends every stream: the memory of zlib rises and
// falls with the number of clients.
const http = require('node:http')
const { pipeline, Readable } = require('node:stream')
const zlib = require('node:zlib')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')

const lines = Array.from({ length: 1500 }, (_, i) => `line ${i} ${(i * 7919) % 1000}\n`)
const server = http.createServer((request, response) => {
  pipeline(
    Readable.from(lines.slice(0, 200 + Math.floor(Math.random() * 1200)), { objectMode: false }),
    zlib.createGzip({ level: 1 }),
    response,
    () => {}
  )
})

withLoad(server, appRun(), {
  phases: [{ perSecond: 25 }],
  requests: [{ method: 'GET', path: '/files/{key}' }]
})

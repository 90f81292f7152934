'use strict'

// A small API has large limits "to be safe": --max-semi-space-size=128 and
// --max-old-space-size=3000 on a large machine. Its live heap is some megabytes; the new space
// alone takes a quarter of a gigabyte.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @type {object[]} a ring */
const recent = []
let count = 0
const server = http.createServer((request, response) => {
  const rows = Array.from({ length: 1500 }, (_, i) => ({
    i,
    count,
    name: `row ${i}`,
    parts: [i % 3, i % 5]
  }))
  recent[count++ % 300] = rows.slice(0, 100)
  sendJson(response, rows.slice(0, 20))
})

withLoad(server, appRun(), {
  phases: [{ perSecond: 300 }],
  requests: [{ method: 'GET', path: '/rows/{key}' }]
})

'use strict'

// A search node is sized for its container. At the start it loads about 270 MB of packed postings
// into Buffers, and an index of 120 MB into the heap. RSS is near the limit, and constant.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const TERMS = 420_000
const postings = Array.from({ length: 270 }, (_, i) => Buffer.allocUnsafeSlow(2 ** 20).fill(i))
/** @type {{ term: string, at: number, of: number }[]} */
const index = []
for (let i = 0; i < TERMS; i++) {
  index.push({ term: `term ${i % 90_000} of ${i}`, at: i % 270, of: (i * 64) % 2 ** 20 })
}

const server = http.createServer((request, response) => {
  const from = Math.floor(Math.random() * (TERMS - 60))
  const hits = index
    .slice(from, from + 60)
    .map(({ term, at, of }) => ({ term, byte: postings[at][of] }))
  sendJson(response, hits.slice(0, 10))
})

withLoad(server, appRun(), {
  phases: [{ perSecond: 60 }],
  requests: [{ method: 'GET', path: '/search/{key}' }]
})

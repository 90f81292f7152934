'use strict'

// A bounded cache keeps thumbnails of two to four kilobytes, and needs all of them. They are slices
// of Node's Buffer pool and fill its slabs, so the slabs rightly stay in memory. The cache fills
// within half a minute; then each new entry replaces the oldest one.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')

const THUMBNAILS = 9000
/** @type {Map<string, Buffer>} */
const cache = new Map()
const run = appRun({ figures: () => ({ thumbnails: cache.size }) })

/** @param {string} key */
function thumbnail (key) {
  let picture = cache.get(key)
  if (!picture) {
    const text = `${key} `.repeat(Math.ceil((2000 + Math.random() * 1900) / (key.length + 1)))
    cache.set(key, picture = Buffer.from(text, 'latin1'))
    if (cache.size > THUMBNAILS) cache.delete(String(cache.keys().next().value))
  }
  return picture
}

const server = http.createServer((request, response) => {
  const pictures = Array.from({ length: 3 }, (_, i) => thumbnail(`${request.url}/${i}`))
  response.end(pictures[0])
})

withLoad(server, run, {
  phases: [{ perSecond: 120 }],
  requests: [{ method: 'GET', path: '/thumbnails/{key}' }],
  keys: 12_000
})

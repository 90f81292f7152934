'use strict'

// An image proxy resizes pictures of many sizes in the thread pool, where several threads allocate
// and free memory. It retains a short fingerprint of each picture, which lies between freed
// pictures. The pictures are freed, but glibc retains their memory.
const http = require('node:http')
const zlib = require('node:zlib')
const { promisify } = require('node:util')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const KB = 1024
const HELD = 9000
const FINGERPRINTS = 12_000
const deflate = promisify(zlib.deflate)
const source = Buffer.alloc(256 * KB, 'pixels and more pixels ')
/** @type {Buffer[]} pictures in work, freed together every few seconds */
let held = []
/** @type {Buffer[]} a ring */
const fingerprints = []
let count = 0

const run = appRun({ figures: () => ({ held: held.length, fingerprints: fingerprints.length }) })
const server = http.createServer(async (request, response) => {
  for (let i = 0; i < 4; i++) {
    const bytes = Math.floor((2 + 100 * Math.random() ** 2) * KB)
    const picture = Buffer.allocUnsafeSlow(bytes)
    source.copy(picture, 0, 0, bytes)
    const fingerprint = Buffer.allocUnsafeSlow(96 + Math.floor(Math.random() * 800))
    picture.copy(fingerprint)
    fingerprints[count++ % FINGERPRINTS] = fingerprint
    held.push(picture, i === 0 ? await deflate(picture, { level: 1 }) : picture)
  }
  if (held.length > HELD) held = []
  sendJson(response, { pictures: 4 })
})

withLoad(server, run, {
  phases: [
    { perSecond: 600, seconds: 14 },
    { perSecond: 12, seconds: 8 }
  ],
  repeat: true,
  requests: [{ method: 'GET', path: '/pictures/{key}' }],
  inFlight: 32
})

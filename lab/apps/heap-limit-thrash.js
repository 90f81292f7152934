'use strict'

// A shop whose catalogue has outgrown the heap: it fills most of the limit, and each request allocates in what little is
// left. V8 collects most of the time. Nothing leaks. More heap (or a smaller catalogue, `--fixed`) heals it.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { fillHeap } = require('../fill-heap')
const { sendJson } = require('../json')

const run = appRun({ figures: () => ({ products: catalogue.length }) })
const catalogue = fillHeap(run.fixed ? 0.4 : 0.87)
const server = http.createServer((request, response) => {
  const from = Math.floor(Math.random() * (catalogue.length - 500))
  const page = catalogue.slice(from, from + 500).map((product) => ({ ...product, shown: true }))
  sendJson(response, page.slice(0, 20))
})

withLoad(server, run, { phases: [{ perSecond: 380 }], requests: [{ method: 'GET', path: '/products/{key}' }], inFlight: 16 })

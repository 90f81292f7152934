'use strict'

// A small JSON API under steady load. The heap draws a saw: up with every request, down with every collection.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { readJson, sendJson } = require('../json')

const stock = Array.from({ length: 5000 }, (_, id) => ({ id, name: `part ${id}`, count: id % 50, tags: [`shelf-${id % 40}`] }))

const run = appRun()
const server = http.createServer(async (request, response) => {
  const [, resource, id] = (request.url ?? '/').split('/')
  if (resource !== 'parts') return sendJson(response, { error: 'not found' }, 404)
  if (request.method === 'POST') {
    const { count } = await readJson(request)
    stock[Number(id)].count = count
  }
  const shelf = stock[Number(id)].tags[0]
  sendJson(response, { part: stock[Number(id)], neighbours: stock.slice(0, 200).filter((part) => part.tags[0] === shelf).map((part) => part.name) })
})

withLoad(server, run, {
  phases: [{ perSecond: 150 }],
  requests: [{ method: 'GET', path: '/parts/{key}' }, { method: 'POST', path: '/parts/{key}', body: '{"count":{key}}' }],
  keys: stock.length
})

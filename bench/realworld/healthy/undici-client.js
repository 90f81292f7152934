'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a client that downloads with undici and drops what it read',
  packages: { undici: '7.16.0' },
  limitMib: 1024,
  load: '20 downloads of 500 kB a second',
  app ({ port, perSecond }) {
    const { Agent, fetch } = require('undici')
    const dispatcher = new Agent({ connections: 8 })
    perSecond(20, async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { dispatcher }).catch(() => null)
      await answer?.arrayBuffer()
    })
  },
  traffic ({ port }) {
    const http = require('node:http')
    const body = Buffer.alloc(500_000, 7)
    http.createServer((request, response) => response.end(body)).listen(port, '127.0.0.1')
  }
}

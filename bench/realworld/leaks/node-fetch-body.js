'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'node-fetch': '2.7.0' }, label: 'node-fetch 2.7.0, body not read' },
  fixed: { packages: { 'node-fetch': '2.7.0' }, label: 'node-fetch 2.7.0, body read' },
  expect: ['resource-leak'],
  culprit: /node-fetch|check/,
  load: '5 requests a second',
  app ({ fixed, port, perSecond }) {
    const fetch = require('node-fetch')
    async function check () {
      const answer = await fetch(`http://127.0.0.1:${port}/`)
      if (fixed) await answer.arrayBuffer()
      return answer.ok
    }
    perSecond(5, () => check().catch(() => {}))
  },
  traffic ({ port }) {
    const http = require('node:http')
    const body = 'z'.repeat(2_000_000)
    http.createServer((request, response) => response.end(body)).listen(port, '127.0.0.1')
  }
}

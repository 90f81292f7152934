'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '18.13.0' },
  fixed: { packages: {}, node: '18.20.8' },
  expect: ['js-heap-leak'],
  culprit: /fetchOrder|undici|fetch/,
  load: '150 requests a second, a signal each',
  app ({ port, perSecond }) {
    async function fetchOrder () {
      const { signal } = new AbortController()
      const answer = await fetch(`http://127.0.0.1:${port}/`, { signal })
      return answer.text()
    }
    perSecond(150, () => fetchOrder().catch(() => {}))
  },
  traffic ({ port }) {
    const http = require('node:http')
    http.createServer((request, response) => response.end('ok')).listen(port, '127.0.0.1')
  }
}

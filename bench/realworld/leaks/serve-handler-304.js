'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'serve-handler': '6.1.7' }, label: 'serve-handler 6.1.7, etag' },
  fixed: { packages: { 'serve-handler': '6.1.7' }, label: 'serve-handler 6.1.7, no etag' },
  expect: ['resource-leak'],
  culprit: /serve-handler|handler/,
  load: '5 conditional requests a second',
  app ({ fixed, port }) {
    const http = require('node:http')
    const handler = require('serve-handler')
    http.createServer((request, response) =>
      handler(request, response, { public: '.', etag: !fixed })).listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    const http = require('node:http')
    perSecond(5, () => {
      http.get({ port, host: '127.0.0.1', path: '/package.json' }, answer => {
        answer.resume()
        const { etag } = answer.headers
        if (etag) request(port, { path: '/package.json', headers: { 'if-none-match': etag } })
      }).on('error', () => {})
    })
  }
}

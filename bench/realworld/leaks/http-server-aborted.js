'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'http-server': '0.11.1' } },
  fixed: { packages: { 'serve-static': '2.2.0' } },
  expect: ['resource-leak'],
  culprit: /ecstatic|http-server/,
  load: '5 downloads a second that break off',
  app ({ fixed, port }) {
    const fs = require('node:fs')
    fs.mkdirSync('public', { recursive: true })
    fs.writeFileSync('public/large.bin', Buffer.alloc(16 * 2 ** 20))
    const serve = fixed && require('serve-static')('public')
    const server = serve
      ? require('node:http').createServer((request, response) =>
        serve(request, response, () => response.end()))
      : require('http-server').createServer({ root: 'public' })
    server.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond }) {
    const http = require('node:http')
    perSecond(5, () => {
      http.get({ port, host: '127.0.0.1', path: '/large.bin' }, answer => answer.socket.destroy())
        .on('error', () => {})
    })
  }
}

'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { sirv: '3.0.2' } },
  fixed: { packages: { 'serve-static': '2.2.0' } },
  expect: ['resource-leak'],
  culprit: /sirv/,
  load: '5 downloads a second that break off',
  app ({ fixed, port }) {
    const fs = require('node:fs')
    const http = require('node:http')
    fs.mkdirSync('public', { recursive: true })
    fs.writeFileSync('public/large.bin', Buffer.alloc(16 * 2 ** 20))
    const serve = fixed ? require('serve-static')('public') : require('sirv')('public')
    http.createServer((request, response) => serve(request, response, () => response.end()))
      .listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond }) {
    const http = require('node:http')
    perSecond(5, () => {
      http.get({ port, host: '127.0.0.1', path: '/large.bin' }, answer => answer.socket.destroy())
        .on('error', () => {})
    })
  }
}

'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { multer: '2.2.0', express: '5.1.0' } },
  fixed: { packages: { multer: '2.3.0', express: '5.1.0' } },
  expect: ['resource-leak'],
  culprit: /multer|disk\.js|_handleFile/,
  load: '8 uploads a second that break off',
  app ({ port }) {
    const express = require('express')
    const multer = require('multer')
    const app = express()
    app.post('/', multer({ dest: 'uploads' }).single('file'), (request, response) => response.end())
    app.use((error, request, response, next) => error && !response.destroyed && response.end())
    app.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond }) {
    const net = require('node:net')
    const head = [
      'POST / HTTP/1.1', 'Host: shop', 'Content-Type: multipart/form-data; boundary=cut',
      'Content-Length: 90000', '', '--cut',
      'Content-Disposition: form-data; name="file"; filename="photo.bin"',
      'Content-Type: application/octet-stream', '', ''
    ].join('\r\n')
    perSecond(8, () => {
      const client = net.connect(port, '127.0.0.1', () => {
        client.write(head + 'x'.repeat(20_000))
        setTimeout(() => client.destroy(), 50)
      })
      client.on('error', () => {})
    })
  }
}

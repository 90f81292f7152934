'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { nodemailer: '7.0.10' }, label: 'nodemailer 7.0.10, a pool for each mail' },
  fixed: { packages: { nodemailer: '7.0.10' }, label: 'nodemailer 7.0.10, one pool' },
  expect: ['resource-leak'],
  culprit: /nodemailer|sendMail|send/,
  load: '3 mails a second',
  app ({ fixed, port, perSecond }) {
    const nodemailer = require('nodemailer')
    const open = () => nodemailer.createTransport({
      pool: true, host: '127.0.0.1', port, ignoreTLS: true
    })
    const shared = open()
    const mail = { from: 'shop@localhost', to: 'ada@localhost', subject: 'Order', text: 'Thanks' }
    const send = () => (fixed ? shared : open()).sendMail(mail)
    perSecond(3, () => send().catch(() => {}))
  },
  // The part of SMTP that a mail needs.
  traffic ({ port }) {
    const net = require('node:net')
    net.createServer(socket => {
      let isBody = false
      socket.on('error', () => {})
      socket.write('220 localhost\r\n')
      socket.on('data', chunk => {
        const text = chunk.toString()
        if (isBody) {
          if (!text.endsWith('\r\n.\r\n')) return
          isBody = false
          return socket.write('250 accepted\r\n')
        }
        isBody = text.startsWith('DATA')
        socket.write(isBody ? '354 go on\r\n' : '250 ok\r\n')
      })
    }).listen(port, '127.0.0.1')
  }
}

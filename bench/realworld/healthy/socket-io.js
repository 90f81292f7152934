'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a socket.io chat whose clients come and go',
  packages: { 'socket.io': '4.8.1', 'socket.io-client': '4.8.1' },
  load: '20 clients a second for 3 s each, 10 messages each',
  app ({ port }) {
    const { Server } = require('socket.io')
    const io = new Server(port, { path: '/chat' })
    io.on('connection', socket => {
      socket.join(`room ${socket.handshake.query.room}`)
      socket.on('say', (text, done) => {
        io.to(`room ${socket.handshake.query.room}`).emit('said', { text, from: socket.id })
        done()
      })
    })
  },
  traffic ({ port, perSecond }) {
    const { io } = require('socket.io-client')
    perSecond(20, n => {
      const socket = io(`http://127.0.0.1:${port}`, {
        path: '/chat', query: { room: String(n % 30) }, forceNew: true, reconnection: false
      })
      let said = 0
      const talk = setInterval(() => socket.emit('say', `message ${said++}`, () => {}), 300)
      setTimeout(() => {
        clearInterval(talk)
        socket.close()
      }, 3000)
    })
  }
}

'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'ws with compression: 60 clients, then none, then 60',
  packages: { ws: '8.18.3' },
  node: '20.20.2',
  load: '10 messages of 4 kB a second for each client, 20 s on, 10 s off',
  app ({ port }) {
    const { WebSocketServer } = require('ws')
    const server = new WebSocketServer({ port, perMessageDeflate: { threshold: 100 } })
    server.on('connection', socket => {
      socket.on('error', () => {})
      socket.on('message', message => socket.send(message))
    })
  },
  traffic ({ port }) {
    const { WebSocket } = require('ws')
    const text = JSON.stringify(Array.from({ length: 150 }, (_, i) => ({ i, name: `row ${i}` })))
    function come () {
      const clients = Array.from({ length: 60 }, () => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}`)
        socket.on('error', () => {})
        const talk = setInterval(() => socket.readyState === 1 && socket.send(text), 100)
        return { socket, talk }
      })
      setTimeout(() => {
        for (const { socket, talk } of clients) {
          clearInterval(talk)
          socket.close()
        }
        setTimeout(come, 10_000)
      }, 20_000)
    }
    setTimeout(come, 1000)
  }
}

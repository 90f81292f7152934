'use strict'

// A chat server has four hundred sockets, which open within seconds and stay open. It sends a
// message to all members several times a second. The many sockets are no leak.
const net = require('node:net')
const { appRun } = require('../app-run')

const MEMBERS = 200 // Each member is two sockets, because both ends are in this process.
const run = appRun({ work: 'messages', figures: () => ({ members: members.size }) })
/** @type {Set<net.Socket>} */
const members = new Set()
const server = net.createServer((socket) => {
  members.add(socket)
  socket.on('error', () => {}).on('close', () => members.delete(socket))
})

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  let connected = 0
  const joining = setInterval(() => {
    net.connect(port, '127.0.0.1').on('error', () => {}).resume()
    if (++connected === MEMBERS) clearInterval(joining)
  }, 25)
})
setInterval(() => {
  const message = JSON.stringify({
    at: Date.now(),
    words: Array.from({ length: 30 }, (_, i) => `word ${i}`)
  })
  for (const member of members) member.write(message)
  run.served(members.size)
}, 200)

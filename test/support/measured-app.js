'use strict'

const http = require('node:http')
const { monitorEventLoopDelay } = require('node:perf_hooks')

/**
 * An app that serves requests and measures itself: `node measured-app.js`. It prints its port. The
 * route /fared returns its longest event loop block and its CPU time since the previous request to
 * it.
 */
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
let cpu = process.cpuUsage()
const fared = () => {
  const { user, system } = process.cpuUsage(cpu)
  const result = { longestBlockSeconds: delay.max / 1e9, cpuSeconds: (user + system) / 1e6 }
  delay.reset()
  cpu = process.cpuUsage()
  return result
}
const server = http.createServer((request, response) => {
  response.end(request.url === '/fared' ? JSON.stringify(fared()) : 'ok')
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())))

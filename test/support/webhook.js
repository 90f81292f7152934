'use strict'

const http = require('node:http')
const { once } = require('node:events')

/**
 * Receives what Alertmanager posts.
 * @returns {Promise<{ url: string, next: (accept: (alert: Alert) => boolean, timeoutMs: number) => Promise<Alert>, stop: () => Promise<void> }>}
 *   next: the first alert, received already or later, that is accepted
 * @typedef {{ status: 'firing' | 'resolved', labels: Record<string, string>, annotations: Record<string, string> }} Alert
 */
async function startWebhook () {
  /** @type {Alert[]} */
  const received = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    received.push(...JSON.parse(Buffer.concat(chunks).toString()).alerts)
    response.end()
    for (const look of waiting) look()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    next: (accept, timeoutMs) => new Promise((resolve, reject) => {
      const finish = () => { clearTimeout(timer); waiting.delete(look) }
      const look = () => {
        const alert = received.find(accept)
        if (alert) { finish(); resolve(alert) }
      }
      const timer = setTimeout(() => { finish(); reject(new Error(`no such alert in ${timeoutMs} ms; received: ${JSON.stringify(received)}`)) }, timeoutMs)
      waiting.add(look)
      look()
    }),
    stop: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
}

module.exports = { startWebhook }

'use strict'

const http = require('node:http')
const { once } = require('node:events')

/**
 * One alert of a notification.
 * @typedef {object} Alert
 * @property {'firing' | 'resolved'} status
 * @property {Record<string, string>} labels
 * @property {Record<string, string>} annotations
 * @property {string} receiver of Alertmanager's configuration
 */

/** Receives posts of Alertmanager. */
async function startWebhook () {
  /** @type {Alert[]} */
  const received = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const { alerts, receiver } = JSON.parse(Buffer.concat(chunks).toString())
    received.push(...alerts.map(alert => ({ ...alert, receiver })))
    response.end()
    for (const look of waiting) look()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/`,
    /** All received alerts, oldest first. */
    received,
    /**
     * The first accepted alert, received already or later.
     * @param {(alert: Alert) => boolean} accept
     * @param {number} timeoutMs
     * @returns {Promise<Alert>} rejects after the timeout, with all received alerts
     */
    next: (accept, timeoutMs) => new Promise((resolve, reject) => {
      const finish = () => { clearTimeout(timer); waiting.delete(look) }
      const look = () => {
        const alert = received.find(accept)
        if (alert) { finish(); resolve(alert) }
      }
      const timer = setTimeout(() => {
        finish()
        reject(
          new Error(
            `no such alert in ${timeoutMs} ms; received: ` +
              `${received.map(({ status, labels }) => `${status} ${labels.alertname} of ` +
                `${labels.target}`).join(', ') || 'nothing'}`
          )
        )
      }, timeoutMs)
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

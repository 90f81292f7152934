'use strict'

const http = require('node:http')
const { once } = require('node:events')

/**
 * A server that stores PUT objects in memory. A test can make it fail.
 * @param {{ port?: number }} [options]
 */
async function startObjectServer ({ port = 0 } = {}) {
  /** @type {Map<string, Buffer>} path → body */
  const objects = new Map()
  /** @type {{ method: string, path: string, headers: http.IncomingHttpHeaders, body: Buffer }[]} */
  const requests = []
  /**
   * Answers to the next requests: a status, 'cut' (the connection, in the middle) or 'hang'; then
   * 200.
   * @type {(number | 'cut' | 'hang')[]}
   */
  const answers = []
  /** Paths that always fail. @type {Set<string>} */
  const refused = new Set()
  const server = http.createServer(async (request, response) => {
    const answer = answers.shift() ?? 200
    const { method = '', url: path = '', headers } = request
    if (answer === 'hang') return
    const chunks = []
    try {
      for await (const chunk of request) {
        chunks.push(chunk)
        if (answer === 'cut') return request.socket.destroy()
      }
    } catch {
      return // The sender is gone.
    }
    const body = Buffer.concat(chunks)
    requests.push({ method, path, headers, body })
    const status = refused.has(path) ? 500 : /** @type {number} */ (answer)
    if (status === 200) objects.set(path, body)
    response.writeHead(status).end()
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    objects,
    requests,
    answers,
    refused,
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    async stop () {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
}

module.exports = { startObjectServer }

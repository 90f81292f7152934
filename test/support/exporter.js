'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { Exporter } = require('../../exporter/exporter')
const { running } = require('./running')

/**
 * An exporter of a test.
 * @param {string} socket
 * @param {object} [changes] of its config
 */
const exporterConfig = (socket, changes) => ({
  listen: { host: '127.0.0.1', port: 0 },
  socket: { path: socket },
  compat: true,
  maxTargets: 1000,
  logLevel: 'silent',
  ...changes
})

/**
 * An exporter on a private socket and a free port, and ways to talk to it.
 * @param {object} [config] changes
 * @param {ConstructorParameters<typeof Exporter>[1]} [options]
 */
async function startExporter (config = {}, options = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-exporter-'))
  const exporter = new Exporter(exporterConfig(path.join(folder, 'exporter.sock'), config), options)
  const { socket, listen } = await exporter.start()
  const url = `http://127.0.0.1:${listen.port}`
  const started = {
    exporter,
    url,
    port: listen.port,
    socket: /** @type {{ path: string, port?: number }} */ (socket),
    /** A connection like that of an agent. */
    async connect () {
      const connection = net.connect(socket)
      connection.on('error', () => {})
      await once(connection, 'connect')
      return connection
    },
    /**
     * @param {string} path
     * @param {object} [headers]
     */
    get: (path, headers) => fetch(url + path, { headers }),
    metrics: () => scrape(url),
    async stop () {
      running.delete(started)
      await exporter.stop()
      fs.rmSync(folder, { recursive: true, force: true })
    }
  }
  running.add(started)
  return started
}

/**
 * The text of /metrics. A test that sent too many requests waits as the exporter demands.
 * @param {string} url of an exporter
 * @param {{ signal?: () => AbortSignal }} [options] signal: of each try
 * @returns {Promise<string>}
 */
async function scrape (url, { signal } = {}) {
  for (;;) {
    const response = await fetch(`${url}/metrics`, { signal: signal?.() })
    const text = await response.text()
    if (response.status !== 429) return text
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

/**
 * Repeats a request until its answer is accepted, as there is no event for data that arrives on a
 * socket.
 * @template T
 * @overload
 * @param {() => T} ask
 * @param {BooleanConstructor} accept
 * @param {number} [timeoutMs]
 * @returns {Promise<Exclude<Awaited<T>, import('./agent-collector').Falsy>>}
 */
/**
 * @template T
 * @overload
 * @param {() => T} ask
 * @param {(answer: Awaited<T>) => boolean} accept
 * @param {number} [timeoutMs]
 * @returns {Promise<Awaited<T>>}
 */
/**
 * @param {() => any} ask
 * @param {(answer: any) => boolean} accept
 * @param {number} [timeoutMs]
 */
async function eventually (ask, accept, timeoutMs = 25_000) {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (accept(answer)) return answer
    if (Date.now() > deadline) {
      throw new Error(`still ${JSON.stringify(answer)?.slice(0, 2000)} after ${timeoutMs} ms`)
    }
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

module.exports = { exporterConfig, startExporter, scrape, eventually }

'use strict'

const dgram = require('node:dgram')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')

const FOLDER = path.join(__dirname, 'overhead')

/** Installs the compared libraries by their lockfile, unless they are installed. */
function installCompared () {
  if (fs.existsSync(path.join(FOLDER, 'node_modules'))) return
  console.log('installing what is compared into bench/overhead …')
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: FOLDER,
    stdio: ['ignore', 'ignore', 'inherit']
  })
}

/**
 * Scrapes once a second, like Prometheus.
 * @param {number} port of prom-client's metrics
 * @returns {NodeJS.Timeout} to be cleared
 */
const scrapeEachSecond = port => setInterval(() => {
  fetch(`http://127.0.0.1:${port}/metrics`).then(response => response.text()).catch(() => {})
}, 1000)

/** Starts receivers that drop the libraries' exports, and an exporter of memwatch. */
async function startSinks () {
  const sink = http
    .createServer((request, response) => request.resume().on('end', () => response.end('{}')))
    .listen(0, '127.0.0.1')
  const statsd = dgram.createSocket('udp4').bind(0, '127.0.0.1')
  await Promise.all([once(sink, 'listening'), once(statsd, 'listening')])
  const socket = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-overhead-')), 's')
  const exporter = spawn(
    process.execPath,
    [
      path.join(__dirname, '../cli/memwatch.js'),
      'exporter',
      '--listen',
      '127.0.0.1:0',
      '--socket',
      socket,
      '--log-level',
      'silent'
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] }
  )
  await once(exporter.stderr, 'data')
  return {
    env: {
      SINK_URL: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (sink.address()).port}`,
      STATSD_PORT: String(statsd.address().port),
      MEMWATCH_SOCKET: socket
    },
    stop () {
      sink.close()
      sink.closeAllConnections()
      statsd.close()
      exporter.kill()
      fs.rmSync(path.dirname(socket), { recursive: true, force: true })
    }
  }
}

module.exports = { FOLDER, installCompared, scrapeEachSecond, startSinks }

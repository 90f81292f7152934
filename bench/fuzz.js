'use strict'

/**
 * `npm run bench:fuzz` sends a million mutated lines over hundreds of connections, and HTTP
 * requests that no client sends, to a real exporter. The exporter must not end, must not grow, must
 * count each rejected line, and must accept frames of a well-behaved agent meanwhile.
 *
 *   npm run bench:fuzz -- --lines 1000000 --seed 1
 *
 * The bench ends with 1 if one of these conditions fails. It prints the seed, with which a run can
 * be repeated.
 */

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { spawnExporter } = require('../test/support/exporter-process')
const { parseOptions } = require('./options')
const { descriptorsOf, rssOf } = require('./process-reading')
const { eventually } = require('../test/support/exporter')
const { hello, frame, line } = require('../test/support/frames')
const { fuzzer } = require('./fuzz-input')

const MIB = 2 ** 20
/** Upper bound of memory that an exporter may gain after the first third of the run. */
const MOST_GROWTH_BYTES = 48 * MIB
/** Number of lines on one connection: the exporter closes it after a hundred rejected lines. */
const LINES_A_CONNECTION = 100
const CONNECTIONS = 50

const given = parseOptions(__filename, {
  lines: { type: 'string', default: '1000000' },
  seed: { type: 'string', default: String(Date.now() % 1e6) },
  requests: { type: 'string', default: '20000' }
})

/**
 * Unlike once(), it ignores errors.
 * @param {net.Socket} socket
 * @param {string} event
 */
const event = (socket, event) => new Promise(resolve => socket.once(event, resolve))
/**
 * @param {any} exporter
 * @param {string} name
 * @returns {Promise<number>} sum over its series
 */
async function metric (exporter, name) {
  const text = await (await fetch(`${exporter.url}/metrics`)).text()
  return text
    .split('\n')
    .filter(line => line.startsWith(name))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/**
 * Lines for one connection.
 * @param {any} exporter
 * @param {ReturnType<typeof fuzzer>} fuzz
 * @param {number} count
 */
async function connection (exporter, fuzz, count) {
  const socket = net.connect(exporter.socket)
  socket.on('error', () => {})
  const closed = event(socket, 'close')
  socket.resume()
  const pid = 1 + fuzz.below(20)
  if (fuzz.random() < 0.8) {
    socket.write(line(hello({ pid, startedAtUnixMs: fuzz.below(1e6) })) + '\n')
  }
  for (let sent = 0; sent < count && !socket.destroyed;) {
    const chunk = []
    for (let i = 0; i < 50 && sent < count; i++, sent++) chunk.push(fuzz.line(pid))
    const bytes = Buffer.concat(chunk)
    // Cuts at arbitrary places, like the network.
    const cut = fuzz.below(bytes.length)
    socket.write(bytes.subarray(0, cut))
    if (!socket.write(bytes.subarray(cut)) && !socket.destroyed) {
      await Promise.race([event(socket, 'drain'), closed])
    }
  }
  if (fuzz.random() < 0.5) socket.end()
  else socket.destroy()
  await closed
}

/**
 * @param {any} exporter
 * @param {ReturnType<typeof fuzzer>} fuzz
 */
async function request (exporter, fuzz) {
  const { port } = new URL(exporter.url)
  const socket = net.connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  socket.setTimeout(5000, () => socket.destroy())
  const target = fuzz.pick([
    '/metrics',
    '/api/v1/targets',
    '/api/v1/deaths',
    '/api/v1/deaths/%00',
    '/api/v1/targets/__proto__/series?track=rssBytes',
    '/api/v1/targets/x/series?track=__proto__',
    '/api/v1/targets/x/trim',
    '/%',
    '//',
    '/../../etc/passwd',
    `/${'a'.repeat(20_000)}`,
    '/api/v1/targets/a%0ab/series?seconds=-1&track=rssBytes',
    '*'
  ])
  const head = `${fuzz.pick(['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'X'])} ` +
    `${target} HTTP/${fuzz.pick(['1.1', '1.1', '1.0', '9.9'])}\r\nHost: ` +
      `${fuzz.pick(['localhost', 'evil.example', '', 'a\tb'])}\r\n`
  const headers = fuzz.pick([
    '',
    'Content-Type: application/json\r\nContent-Length: 5\r\n',
    `X: ${'y'.repeat(fuzz.below(30_000))}\r\n`,
    'Transfer-Encoding: chunked\r\n',
    'Content-Length: 99999999999\r\n',
    'Accept: application/openmetrics-text\r\n',
    'Authorization: Bearer \u00ff\r\n'
  ])
  const bytes = Buffer.from(
    `${head}${headers}Connection: ` +
      `close\r\n\r\n${fuzz.pick(['', '{"a"', '__proto__', '5\r\nhello\r\n0\r\n\r\n'])}`,
    'latin1'
  )
  if (fuzz.random() < 0.2) bytes[fuzz.below(bytes.length)] = fuzz.below(256)
  socket.end(bytes)
  socket.resume()
  await event(socket, 'close')
}

/** Work that must continue under any input. @param {any} exporter */
async function goodAgent (exporter) {
  const socket = net.connect(exporter.socket)
  await once(socket, 'connect')
  socket.write(line(hello({ pid: 4_000_000, name: 'good', startedAtUnixMs: Date.now() })) + '\n')
  let sequence = 0
  const timer = setInterval(
    () => socket.write(line(frame({ sequence: ++sequence, uptimeSeconds: sequence })) + '\n'),
    200
  )
  return {
    sent: () => sequence,
    stop: () => {
      clearInterval(timer)
      socket.destroy()
    }
  }
}

async function main () {
  const lines = Number(given.lines)
  const fuzz = fuzzer(Number(given.seed))
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-fuzz-'))
  const exporter = await spawnExporter({
    args: ['--data-dir', path.join(folder, 'data'), '--max-targets', '200']
  })
  const good = await goodAgent(exporter)
  const life = { ended: false }
  exporter.ended.then(() => { life.ended = true })
  const began = performance.now()
  let sent = 0
  let asked = 0
  let settledRss = NaN
  console.log(`seed ${given.seed}`)
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    while (sent < lines && !life.ended) {
      const count = Math.min(LINES_A_CONNECTION, lines - sent)
      sent += count
      await connection(exporter, fuzz, count)
      if (asked < Number(given.requests)) {
        const share = Math.ceil(Number(given.requests) / (lines / LINES_A_CONNECTION))
        asked += share
        for (let i = 0; i < share; i++) await request(exporter, fuzz)
      }
      if (Number.isNaN(settledRss) && sent >= lines / 3) settledRss = rssOf(exporter.pid)
    }
  }))
  if (life.ended) throw new Error(`the exporter ended: ${exporter.output()}`)
  const seconds = (performance.now() - began) / 1000
  await eventually(
    () => metric(exporter, 'memwatch_exporter_connections'),
    connections => connections === 1
  )
  const rss = rssOf(exporter.pid)
  const [taken, rejected] = [
    await metric(exporter, 'memwatch_exporter_frames_total'),
    await metric(exporter, 'memwatch_exporter_lines_rejected_total')
  ]
  const { framesLost, up } = (await (await fetch(`${exporter.url}/api/v1/targets`)).json()).find((/** @type {any} */ { target }) => target === 'good')
  console.log(
    `${sent} lines in ${seconds.toFixed(0)} s: ${taken} frames taken, ${rejected} lines ` +
      `rejected; ${asked} HTTP requests`
  )
  console.log(
    (await (await fetch(`${exporter.url}/metrics`)).text())
      .split('\n')
      .filter(line => line.startsWith('memwatch_exporter_lines_rejected_total'))
      .join('\n')
  )
  console.log(
    `RSS after a third ${(settledRss / MIB).toFixed(0)} MiB, at the end ` +
      `${(rss / MIB).toFixed(0)} MiB; ${descriptorsOf(exporter.pid)} descriptors; of ` +
        `${good.sent()} frames of the good agent ${framesLost} lost; ` +
          `${await metric(exporter, 'memwatch_exporter_frames_shed_total')} frames left unread ` +
            'for want of time'
  )
  // Under a flood the exporter skips and counts frames of healthy targets: no other frame may be
  // missing.
  const shed = await metric(exporter, 'memwatch_exporter_frames_shed_total')
  const fine = up && framesLost <= shed && rss - settledRss < MOST_GROWTH_BYTES && rejected > 0
  console.log(fine ? 'right' : 'WRONG')
  good.stop()
  await exporter.stop()
  fs.rmSync(folder, { recursive: true, force: true })
  process.exitCode = fine ? 0 : 1
}

main()

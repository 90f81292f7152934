'use strict'

/**
 * `npm run bench:api` runs schemathesis with the OpenAPI description that an exporter serves. The
 * exporter has a watched app, a dead app and a capture. The bench omits /api/v1/recording, whose
 * answers take as long as requested. It installs schemathesis (Python ≥ 3.10 and pip), and passes
 * it all arguments behind --.
 *
 *   npm run bench:api -- -- --max-examples 500
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { startExporter, eventually } = require('../test/support/exporter')

const VERSION = '4.32.5'
const AGENT = path.join(__dirname, '../agent/index.js')
/** A rate below the exporter's limit for one address. */
const RATE = '40/s'

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-api-'))
  execFileSync('python3', ['-m', 'venv', folder], { stdio: 'inherit' })
  execFileSync(path.join(folder, 'bin/pip'), ['install', '--quiet', `schemathesis==${VERSION}`], {
    stdio: 'inherit'
  })
  const exporter = await startExporter({ autoCaptures: false })
  const start = (/** @type {string} */ name, /** @type {string} */ code) =>
    spawn(process.execPath, ['-r', AGENT, '-e', code], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_SOCKET: exporter.socket.path,
        MEMWATCH_NAME: name
      }
    })
  const json = async (/** @type {string} */ at, /** @type {RequestInit} */ init = {}) =>
    (await fetch(`${exporter.url}/api/v1/${at}`, init)).json()
  const app = start('shop', 'setInterval(() => {}, 1000)')
  start('dead', 'setTimeout(() => process.exit(3), 1500)')
  await eventually(
    () => json('deaths'),
    found => found.length > 0
  )
  await json('targets/shop/captures?kind=report', { method: 'POST' })
  await eventually(
    () => json('captures'),
    ([capture]) => capture?.state === 'done'
  )
  const test = spawn(
    path.join(folder, 'bin/st'),
    [
      'run',
      `${exporter.url}/api/v1/openapi.json`,
      '--url',
      exporter.url,
      '--rate-limit',
      RATE,
      '--exclude-path',
      '/api/v1/recording',
      ...process.argv.slice(2)
    ],
    { cwd: folder, stdio: 'inherit' }
  ) // Schemathesis writes its cache into this folder, which is removed below.
  const [code] = await once(test, 'close')
  app.kill('SIGKILL')
  await exporter.stop()
  fs.rmSync(folder, { recursive: true, force: true })
  process.exitCode = code
}

main()

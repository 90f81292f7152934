'use strict'

const { execFileSync } = require('node:child_process')
const path = require('node:path')

const ROOT = path.join(__dirname, '../..')
/** Starts an exporter, and prints the loaded files of memwatch: after the start, after a frame. */
const PROGRAM = `
  const os = require('node:os'), fs = require('node:fs'), path = require('node:path')
  const { Exporter } = require('./exporter/exporter')
  const loaded = () => Object.keys(require.cache).map(file => path.relative(process.cwd(), file))
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-loading-'))
  const exporter = new Exporter({
    socket: { path: path.join(folder, 's') },
    listen: { host: '127.0.0.1', port: 0 },
    compat: false,
    maxTargets: 10,
    logLevel: 'silent'
  })
  exporter.start().then(async ({ socket }) => {
    const ready = loaded()
    const app = require('node:child_process').spawn(
      process.execPath,
      ['-r', './agent', '-e', 'setInterval(() => {}, 1000)'],
      { env: { ...process.env, MEMWATCH_SOCKET: socket.path, MEMWATCH_INTERVAL_SECONDS: '0.1' } }
    )
    await require('node:events').once(exporter, 'frame')
    await new Promise(resolve => setImmediate(resolve))
    app.kill()
    await exporter.stop()
    fs.rmSync(folder, { recursive: true })
    console.log(JSON.stringify({ ready, framed: loaded() }))
    process.exit()
  })`

it('loads the diagnoses with the first frame, so that a sidecar starts without them', () => {
  const { ready, framed } = JSON.parse(
    execFileSync(process.execPath, ['-e', PROGRAM], { cwd: ROOT, encoding: 'utf8' })
  )
  const judges = /^engine\/(diagnoses\/(?!define-diagnosis)|signals\/index)/
  const late = /^exporter\/(catalog\/target-metrics|captures\/automatic)/
  expect(ready.length).toBeGreaterThan(100)
  expect(ready.filter(file => judges.test(file) || late.test(file))).toEqual([])
  expect(framed.filter(file => judges.test(file)).length).toBeGreaterThan(10)
})

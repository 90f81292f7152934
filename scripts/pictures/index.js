'use strict'

/**
 * `npm run pictures`: records `memwatch run` in a real terminal and in a memory cgroup of 512 MiB,
 * like that of a container, and writes docs/pictures/run.svg. The app is one of the lab, under
 * load. The script takes half a minute, and needs Linux, root and `script` of util-linux.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { ROOT } = require('../generate')
const { terminalSvg } = require('./terminal-svg')

const COLUMNS = 100
const ROWS = 46
const APP = 'semi-space-starvation'
const LIMIT_MIB = 512
/** The picture runs three times as fast as the app, and then shows the report for a while. */
const SPEED = 3
const HOLD_SECONDS = 12
const COMMAND = 'run --for 30 -- node server.js'
const TYPED = `\x1b[2m# in a container of ${LIMIT_MIB} MiB\x1b[0m\r\n` +
  `\x1b[32m$\x1b[0m npx @memwatch/cli ${COMMAND}\r\n`

async function main () {
  const group = createMemoryGroup({ limitBytes: LIMIT_MIB * 2 ** 20, name: 'picture' })
  if (!group.supported) throw new Error(`no memory cgroup: ${group.reason}`)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-picture-'))
  const app = path.join(ROOT, 'lab/apps', `${APP}.js`)
  // Progress lines of the app would break those of memwatch.
  fs.writeFileSync(path.join(folder, 'server.js'), `process.argv[1] = ${JSON.stringify(app)}
process.stdout.write = process.stderr.write = () => true
require('node:module').runMain()\n`)
  const { command, args } = group.wrap('script', ['-qfec', `stty cols ${COLUMNS} rows ${ROWS}; ` +
    `"${process.execPath}" "${path.join(ROOT, 'cli/memwatch.js')}" ${COMMAND}`, '/dev/null'])
  const terminal = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, TERM: 'xterm-256color', FORCE_COLOR: '1', MEMWATCH_NAME: 'shop' },
    stdio: ['pipe', 'pipe', 'inherit']
  })
  const startedAt = performance.now()
  /** @type {import('./terminal-svg').Chunk[]} */
  const chunks = [{ atSeconds: 0, data: TYPED }]
  terminal.stdout.setEncoding('utf8').on('data', data =>
    chunks.push({ atSeconds: (performance.now() - startedAt) / 1000 / SPEED, data }))
  const [status] = await once(terminal, 'close')
  fs.rmSync(folder, { recursive: true, force: true })
  await group.remove()
  if (status !== 0) throw new Error(`memwatch run ended with status ${status}`)
  const svg = await terminalSvg(chunks, {
    columns: COLUMNS,
    rows: ROWS,
    title: 'memwatch run finds that the new space of an app is too small, and prints the flag',
    holdSeconds: HOLD_SECONDS
  })
  const file = path.join(ROOT, 'docs/pictures/run.svg')
  fs.writeFileSync(file, svg)
  console.log(`${file}: ${svg.length} bytes`)
}

main()
